"""Runs: long work in an output folder, which goes on after any end and does nothing twice.

A `Run` declares stages (`Run.stage`: what makes an artefact, what it depends on) and brings them up to date. The
ledger in ``stages.json`` knows what each artefact was made from; journals and drafts keep the finished chunks of
what is unfinished; a lock keeps a second run out; `read_status` tells how far a folder is.
"""

from spkbase.runs.destination import Destination, DestinationLike, as_destination, file_destination
from spkbase.runs.drafts import ArrayDraft, working_folder
from spkbase.runs.journal import SUFFIX, Journal, resumed_map
from spkbase.runs.ledger import versions
from spkbase.runs.locks import is_temporary, remove_temporaries, sole_use
from spkbase.runs.run import REPORT, Run, start_run
from spkbase.runs.stages import Depends, Draft, Given, Handle, Stage
from spkbase.runs.status import StageStatus, format_status, read_status, status_record
