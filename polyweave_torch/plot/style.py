"""What the figures share: colours that people with any colour vision tell apart, and sizes for TensorBoard."""

from matplotlib import rcParams

# Okabe and Ito's colours. Markers say the same again.
HELP, HARM, CAUTION, NEUTRAL = "#009E73", "#D55E00", "#E69F00", "#777777"
# TensorBoard shows a figure of 5 inches about 350 pixels wide.
FONT = 13


def shorten(name: str, length: int = 20) -> str:
    """A name as it is drawn beside a point or a row; of a long one both ends, since names often differ at their end.

    A dollar in it is escaped, so that it begins no mathematics.
    """
    if len(name) > length:
        head = length // 2
        name = f"{name[:head]}…{name[head + 1 - length :]}"
    return name.replace("$", r"\$") if rcParams["text.parse_math"] else name
