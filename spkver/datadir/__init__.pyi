from .directory import DataDir as DataDir
from .directory import check_ids as check_ids
from .directory import enrolment as enrolment
from .directory import unfit_id as unfit_id
from .directory import write_datadir as write_datadir
from .reading import read_datadir as read_datadir
from .twins import check_twin as check_twin
