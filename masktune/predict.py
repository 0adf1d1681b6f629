from masktune.predictions import *  # noqa
from masktune.predictions import Predictions, predict, by_position  # temporary
