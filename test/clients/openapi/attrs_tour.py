"""Makes the tour with a client by openapi-python-client, in which every refusal is a Problem."""

import json
import os

from penstock_client import AuthenticatedClient, Client
from penstock_client.api.findings import list_findings, read_finding
from penstock_client.api.releases import register_release
from penstock_client.api.sessions import identify_session
from penstock_client.api.workspaces import list_surfaces
from penstock_client.models import (
    FindingsPage,
    IdentifySessionRequest,
    IdentifySourceCustom,
    IdentifySourceCustomType,
    Problem,
    RegisterReleaseRequest,
    SurfacesPage,
)

env = os.environ
page = Client(base_url=env["INGEST_URL"], headers={"x-service-public-key": env["PUBLIC_KEY"]})
build = AuthenticatedClient(base_url=env["INGEST_URL"], token=env["SECRET_KEY"])
user = AuthenticatedClient(base_url=env["API_URL"], token=env["SESSION_TOKEN"])
nobody = Client(base_url=env["API_URL"])

source = IdentifySourceCustom(type_=IdentifySourceCustomType.CUSTOM, name="Our sign-in")
person = IdentifySessionRequest(session_id="attrs", identifier="user-7", source=source)
identified = identify_session.sync(client=page, body=person)
release = register_release.sync(client=build, body=RegisterReleaseRequest(version=env["VERSION"]))
surfaces = list_surfaces.sync(client=user, limit=5)
findings = list_findings.sync(client=user)
unknown = read_finding.sync("fnd_" + "a" * 26, client=user)
missing = list_findings.sync(client=nobody)
assert isinstance(surfaces, SurfacesPage) and isinstance(findings, FindingsPage)
assert isinstance(unknown, Problem) and isinstance(missing, Problem)

print(
    json.dumps(
        {
            "identified": identified.ok,
            "release": release.release_slug,
            "surfaces": [surface.name for surface in surfaces.surfaces],
            "nextCursor": findings.next_cursor,
            "refusals": [unknown.code.value, missing.code.value],
        }
    )
)
