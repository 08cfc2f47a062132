"""Paths under `/contexts/{context}/…`, which are other ways to write paths without it."""

from urllib.parse import quote, unquote

from ottla.schemas.stored.subjects import context_prefix

Query = list[tuple[str, str]]


def without_context(path: str, query: Query) -> tuple[str, Query]:
    """Return the path that is meant: with a subject of the context, or with a parameter that names it.

    Parts of the path stay as they are encoded, since a subject may have a slash in it.
    """
    parts = path.split("/")
    if len(parts) < 4 or parts[1] != "contexts":
        return path, query
    context = unquote(parts[2])
    prefix = context_prefix(context)
    rest = parts[3:]
    match rest[0]:
        case "subjects" | "compatibility":
            place = 1 if rest[0] == "subjects" else 2
            if len(rest) > place:
                rest[place] = quote(_qualified(prefix, unquote(rest[place])), safe="")
            elif rest[0] == "subjects":
                query = _with_prefix(query, "subjectPrefix", prefix)
        case "config" | "mode":
            subject = unquote(rest[1]) if len(rest) > 1 else ""
            qualified = _qualified(prefix, subject)
            rest[1:2] = [quote(qualified, safe="")] if qualified else []
        case "schemas":
            name = "subject" if len(rest) > 1 else "subjectPrefix"
            query = _with_prefix(query, name, prefix)
    return "/" + "/".join(rest), query


def _qualified(prefix: str, subject: str) -> str:
    return subject if subject.startswith(":.") else prefix + subject


def _with_prefix(query: Query, name: str, prefix: str) -> Query:
    given = dict(query).get(name, "")
    return [item for item in query if item[0] != name] + [(name, _qualified(prefix, given))]
