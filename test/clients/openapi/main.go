// Makes the tour with a client by oapi-codegen.
package main

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"strings"

	"penstock.example/openapi-client/client"
)

func main() {
	ctx := context.Background()
	page := connect("INGEST_URL", "x-service-public-key", os.Getenv("PUBLIC_KEY"))
	build := connect("INGEST_URL", "authorization", "Bearer "+os.Getenv("SECRET_KEY"))
	user := connect("API_URL", "authorization", "Bearer "+os.Getenv("SESSION_TOKEN"))
	nobody := connect("API_URL", "accept", "application/json")

	person := client.IdentifySessionRequest{SessionId: "go", Identifier: "user-7"}
	source := client.IdentifySourceCustom{Type: "custom", Name: "Our sign-in"}
	check(person.Source.FromIdentifySourceCustom(source))
	identified, err := page.IdentifySessionWithResponse(ctx, person)
	check(err)
	version := client.RegisterReleaseRequest{Version: os.Getenv("VERSION")}
	release, err := build.RegisterReleaseWithResponse(ctx, &client.RegisterReleaseParams{}, version)
	check(err)
	limit := 5
	surfaces, err := user.ListSurfacesWithResponse(ctx, &client.ListSurfacesParams{Limit: &limit})
	check(err)
	findings, err := user.ListFindingsWithResponse(ctx, &client.ListFindingsParams{})
	check(err)
	unknown, err := user.ReadFindingWithResponse(ctx, "fnd_"+strings.Repeat("a", 26), &client.ReadFindingParams{})
	check(err)
	missing, err := nobody.ListFindingsWithResponse(ctx, &client.ListFindingsParams{})
	check(err)

	names := []string{}
	for _, surface := range surfaces.JSON200.Surfaces {
		names = append(names, surface.Name)
	}
	// Refusals of different statuses are of one type.
	refusals := []client.ProblemCode{}
	for _, problem := range []client.Problem{*unknown.JSON404, *missing.JSON401} {
		refusals = append(refusals, problem.Code)
	}
	check(json.NewEncoder(os.Stdout).Encode(map[string]any{
		"identified": identified.JSON200.Ok,
		"release":    release.JSON200.ReleaseSlug,
		"surfaces":   names,
		"nextCursor": findings.JSON200.NextCursor,
		"refusals":   refusals,
	}))
}

func connect(address, header, value string) *client.ClientWithResponses {
	add := func(_ context.Context, request *http.Request) error {
		request.Header.Set(header, value)
		return nil
	}
	connected, err := client.NewClientWithResponses(os.Getenv(address), client.WithRequestEditorFn(add))
	check(err)
	return connected
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
