"""JSON as text, encoded often: `json.dumps` creates an encoder for every call."""

import json
from collections.abc import Callable
from json import encoder


def json_encoder(
    *, ensure_ascii: bool = True, sort_keys: bool = False, separators: tuple[str, str] = (", ", ": ")
) -> Callable[[object], str]:
    """Return a function like `json.dumps` with these options, for data without cycles."""
    to_text = json.JSONEncoder(ensure_ascii=ensure_ascii, sort_keys=sort_keys, separators=separators)
    # Of CPython; another Python may not have it. Even a JSONEncoder creates one for every call.
    create = vars(encoder).get("c_make_encoder")
    if create is None:
        return to_text.encode
    quote = vars(encoder)["encode_basestring_ascii" if ensure_ascii else "encode_basestring"]
    item_separator, key_separator = separators
    encode = create(None, to_text.default, quote, None, key_separator, item_separator, sort_keys, False, True)
    join = "".join
    return lambda data: join(encode(data, 0))
