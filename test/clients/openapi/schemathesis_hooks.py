"""Checks of schemathesis that know which rules a schema cannot express."""

import re

import schemathesis

# Rules between fields, of stored data, of the grammar of a query and of a cursor, which only an earlier response has.
BEYOND_SCHEMAS = re.compile(
    "cursor is invalid|must be before|must be at most 31 days|must be less than|would read too much|too many"
    "|must be given with|must be left out|ids must be given|must have either|must have status or assignee"
    "|must keep a member|is a member with other|cannot be removed|was not uploaded|must be an origin|sessions must be"
    "|how long this installation|unless the message is a response|invalid parameter|parse error|must be a duration"
    "|tags |q must|q has|is not JSON|must not be nested|must not contain|must be relative|must be separated"
    "|must be well-formed|is declared twice|must bring|as JSON without blanks|must be an email|must be a UUID|needs"
    "|aggregation must|step must|must be permissions|must have at least one condition|must be in the future"
    "|exceeded maximum resolution|is not TraceQL|groupBy must|filter must|kinds must have|must be at most 30 days"
    "|must be at most 9007199254740991|does not begin as|[Ii]dempotency-[Kk]ey|is not a source map|must not be after|not a valid JSON-RPC|a chunk is JSON lines|no control characters|the body is empty"
    "|must not have the finding|must be a finding that is merged|must have findings of|names that differ"
    "|must have type, message, file or service|must have fingerprint or title"
    "|must be alone|is required, or values|is required with|must not be keep|must be an expression of RE2"
    "|pattern is too large|must not match an empty text|keys together|must have a key|patterns"
    "|must be the name of a receiver|must have either above or below|with the kind|without the kind|must name receivers"
    "|must end with a word|or services, names|names and attributes together|only at its end|must not be empty"
)


@schemathesis.check
def valid_requests_are_accepted(context, response, case):
    """Replaces positive_data_acceptance: a valid request is refused only for a rule beyond its schema."""
    generation = case.meta and case.meta.generation
    if generation is None or not generation.mode.is_positive or response.status_code not in (400, 422):
        return
    if not BEYOND_SCHEMAS.search(response.text):
        raise AssertionError(f"a valid request was refused: {response.text[:500]}")


@schemathesis.serializer("application/x-protobuf")
def protobuf(context, value):
    return value if isinstance(value, bytes) else b""
