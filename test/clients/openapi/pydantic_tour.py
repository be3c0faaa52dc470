"""Makes the tour with the models of datamodel-code-generator for pydantic 2, and the HTTP client of Python."""

import json
import os
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import penstock_models as models

env = os.environ


def send(url, model, body=None, **headers):
    """Returns the response as the model, or the Problem of a refusal."""
    data = body and body.model_dump_json(exclude_none=True).encode()
    request = Request(url, data, {"content-type": "application/json", **headers})
    try:
        with urlopen(request, timeout=30) as response:
            return model.model_validate_json(response.read())
    except HTTPError as refusal:
        return models.Problem.model_validate_json(refusal.read())


ingest, api = env["INGEST_URL"], env["API_URL"]
user = {"authorization": f"Bearer {env['SESSION_TOKEN']}"}
build = {"authorization": f"Bearer {env['SECRET_KEY']}"}

source = models.IdentifySourceCustom(type="custom", name="Our sign-in")
person = models.IdentifySessionRequest(sessionId="pydantic", identifier="user-7", source=source)
key = {"x-service-public-key": env["PUBLIC_KEY"]}
identified = send(f"{ingest}/v3/session/identify", models.SessionResponse, person, **key)
version = models.RegisterReleaseRequest(version=env["VERSION"])
release = send(f"{ingest}/v3/releases", models.RegisteredRelease, version, **build)
surfaces = send(f"{api}/v3/surfaces?limit=5", models.SurfacesPage, **user)
findings = send(f"{api}/v3/findings", models.FindingsPage, **user)
unknown = send(f"{api}/v3/findings/fnd_{'a' * 26}", models.FindingDetails, **user)
missing = send(f"{api}/v3/findings", models.FindingsPage)

print(
    json.dumps(
        {
            "identified": identified.ok,
            "release": release.releaseSlug,
            "surfaces": [surface.name for surface in surfaces.surfaces],
            "nextCursor": findings.nextCursor,
            "refusals": [unknown.code.value, missing.code.value],
        }
    )
)
