from .computed import ComputedRows as ComputedRows
from .selected import SelectedRows as SelectedRows
from .selected import fill_rows as fill_rows
from .stored import Rows as Rows
from .stored import StoredArray as StoredArray
from .stored import part as part
from .stored import stored_rows as stored_rows
