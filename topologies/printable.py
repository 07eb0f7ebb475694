"""Text of others, made safe for one line of a log, a table or an error."""

MAX_NAME_LENGTH = 256
"""Characters of the name of a node, a job or a flow group; here, since `topologies.names` is slow to import."""
PRINTABLE_LIMIT = 500
"""Characters of a text that a line of a log shows."""


def printable(text: str, limit: int = PRINTABLE_LIMIT) -> str:
    r"""Return a text as one line of at most ``limit`` characters, which no terminal takes for a command.

    Control characters, line ends and other characters without a picture become escapes such as ``\x1b``. Where
    something is cut off, the end says how long the text was.
    """
    escaped = "".join(map(_escaped, text[:limit]))
    if len(text) <= limit and len(escaped) <= limit:
        return escaped
    mark = f"… ({len(text):,} characters)"
    return (escaped[: max(0, limit - len(mark))] + mark)[:limit]


def quoted(name: str) -> str:
    """Return a name in quotation marks for a message: all of it if it may be a name, else its beginning and length."""
    if len(name) <= MAX_NAME_LENGTH:
        return repr(name)
    return f"{name[:MAX_NAME_LENGTH]!r}… ({len(name):,} characters)"


def _escaped(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
