"""What programs written for MXNet need: `import mxnet` answered, and a warning about views."""

from heterosis.mxnet.compat.alias import install_as_mxnet
from heterosis.mxnet.compat.views import ViewWriteWarning

__all__ = ["ViewWriteWarning", "install_as_mxnet"]
