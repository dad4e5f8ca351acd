from .stored import ComputedRows as ComputedRows
from .stored import Rows as Rows
from .stored import SelectedRows as SelectedRows
from .stored import StoredArray as StoredArray
from .stored import fill_rows as fill_rows
from .stored import part as part
from .stored import stored_rows as stored_rows
