from .examples import EXAMPLES as EXAMPLES
from .recipes import SYSTEMS as SYSTEMS
