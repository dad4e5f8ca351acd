from .examples import EXAMPLES as EXAMPLES
