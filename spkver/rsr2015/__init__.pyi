from .command import recipe_command as recipe_command
from .lists import NAP_LISTS as NAP_LISTS
from .lists import Config as Config
from .lists import given_files as given_files
from .lists import named_lists as named_lists
from .lists import prepare as prepare
from .lists import training_lists as training_lists
from .results import report as report
