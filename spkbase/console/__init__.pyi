from .commands import Command as Command
from .commands import Group as Group
from .commands import LazyGroup as LazyGroup
from .commands import ResumableCommand as ResumableCommand
from .commands import echo_log as echo_log
from .options import worker_options as worker_options
from .parameters import take_once as take_once
