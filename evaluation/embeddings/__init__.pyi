from .cosine import cosine_scores as cosine_scores
from .files import read_embeddings as read_embeddings
from .sets import Embeddings as Embeddings
from .sets import check_norms as check_norms
from .sets import row_norms as row_norms
from .speaker_means import Averaging as Averaging
from .speaker_means import SpeakerVectors as SpeakerVectors
from .speaker_means import speaker_vectors as speaker_vectors
