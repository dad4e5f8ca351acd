"""What command lines share: errors as one clear message with status 2, a clean end on Ctrl-C, log lines on standard
error, the options for workers. `Command` and `LazyGroup` are the classes to use."""

from spkbase.console.commands import Command, Group, LazyGroup, ResumableCommand, echo_log
from spkbase.console.options import worker_options
from spkbase.console.parameters import take_once
