from .supervectors import MapConfig as MapConfig
from .supervectors import Supervectors as Supervectors
from .supervectors import adapt_multisession as adapt_multisession
from .supervectors import adapt_supervectors as adapt_supervectors
from .supervectors import open_supervectors as open_supervectors
from .supervectors import sum_by_model as sum_by_model
