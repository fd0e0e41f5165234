"""Which distribution brings a module that bears another name, and which modules nobody brings any more."""

from __future__ import annotations

from typing import Final

BROUGHT_BY: Final[dict[str, str]] = {
    "Crypto": "pycryptodome",
    "Cryptodome": "pycryptodomex",
    "OpenGL": "pyopengl",
    "OpenSSL": "pyopenssl",
    "PIL": "pillow",
    "_cffi_backend": "cffi",
    "_distutils_hack": "setuptools",
    "_pytest": "pytest",
    "_soundfile": "soundfile",
    "_yaml": "pyyaml",
    "absl": "absl-py",
    "attr": "attrs",
    "bs4": "beautifulsoup4",
    "cpuinfo": "py-cpuinfo",
    "cv2": "opencv-python",
    "dateutil": "python-dateutil",
    "decouple": "python-decouple",
    "discord": "discord-py",
    "distutils": "setuptools",
    "docx": "python-docx",
    "dotenv": "python-dotenv",
    "faiss": "faiss-cpu",
    "fitz": "pymupdf",
    "git": "gitpython",
    "github": "pygithub",
    "google.protobuf": "protobuf",
    "grpc": "grpcio",
    "jose": "python-jose",
    "jwt": "pyjwt",
    "kafka": "kafka-python",
    "ldap": "python-ldap",
    "magic": "python-magic",
    "mpl_toolkits": "matplotlib",
    "multipart": "python-multipart",
    "nacl": "pynacl",
    "pkg_resources": "setuptools",
    "pptx": "python-pptx",
    "psycopg2": "psycopg2-binary",
    "pylab": "matplotlib",
    "pynvml": "nvidia-ml-py",
    "pythoncom": "pywin32",
    "pywintypes": "pywin32",
    "rapidjson": "python-rapidjson",
    "serial": "pyserial",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "slugify": "python-slugify",
    "snappy": "python-snappy",
    "socks": "pysocks",
    "tlz": "toolz",
    "usb": "pyusb",
    "websocket": "websocket-client",
    "win32api": "pywin32",
    "win32con": "pywin32",
    "wx": "wxpython",
    "yaml": "pyyaml",
    "zmq": "pyzmq",
}
"""Module -> canonical name of the distribution that most people have it from.

Source: the top-level folders of the distributions' wheels on the default index. Where the names agree, none is needed.
"""

LAST_WITH: Final[dict[str, str]] = {"pkg_resources": "setuptools<82"}
"""Module -> requirement, where later releases of its distribution have it no more. Source: pytorch/vision 9380."""

PYTHON_2: Final = frozenset(
    {"BaseHTTPServer", "ConfigParser", "Cookie", "HTMLParser", "Queue", "SimpleHTTPServer", "SocketServer", "StringIO",
     "Tkinter", "UserDict", "__builtin__", "cPickle", "cStringIO", "commands", "cookielib", "copy_reg", "dummy_thread",
     "exceptions", "httplib", "md5", "sets", "sha", "thread", "urllib2", "urlparse", "xmlrpclib"}
)  # fmt: skip
"""What only Python 2 had: code that asks for it behind a condition has another way."""
