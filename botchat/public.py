"""What ``import botchat`` has besides the requests: values that they take, and what rates alone.

For type checkers and the site; `botchat._PLACES` says where each stands, so that it comes alone.
"""

from __future__ import annotations

from botchat.pipeline.plot import plot as plot
from botchat.pipeline.reading import read as read
from botchat.ratings.bradley_terry import fit
from botchat.ratings.comparisons import Comparisons as Comparisons
from botchat.ratings.elo import bootstrap_elo
from botchat.records import VERSION
from botchat.requests.arguments import JudgeName as JudgeName
from botchat.requests.arguments import Limits as Limits
from botchat.requests.arguments import Spending as Spending
from botchat.workspace.folder import Workspace as Workspace

__version__ = VERSION
bradley_terry, elo = fit, bootstrap_elo
