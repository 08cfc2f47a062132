// Registers, looks up, checks and deletes schemas with franz-go's package sr, and encodes a value.
package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"

	"github.com/twmb/franz-go/pkg/sr"
)

const schema = `{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}`
const wider = `{"type":"record","name":"R","fields":[{"name":"a","type":"long"},{"name":"b","type":"int"}]}`

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	url, subject := os.Args[1], os.Args[2]
	ctx := context.Background()
	client, err := sr.NewClient(sr.URLs(url))
	check(err)
	created, err := client.CreateSchema(ctx, subject, sr.Schema{Schema: schema, Type: sr.TypeAvro})
	check(err)
	found, err := client.LookupSchema(ctx, subject, sr.Schema{Schema: schema})
	check(err)
	byID, err := client.SchemaByID(ctx, created.ID)
	check(err)
	verdict, err := client.CheckCompatibility(ctx, subject, -1, sr.Schema{Schema: wider})
	check(err)
	levels := client.SetCompatibility(ctx, sr.SetCompatibility{Level: sr.CompatFull}, subject)
	check(levels[0].Err)
	var serde sr.Serde
	serde.Register(created.ID, struct{}{}, sr.EncodeFn(func(any) ([]byte, error) { return []byte{14}, nil }))
	encoded, err := serde.Encode(struct{}{})
	check(err)
	deleted, err := client.DeleteSubject(ctx, subject, sr.SoftDelete)
	check(err)
	_, err = client.SchemaByVersion(ctx, subject, -1)
	said, err := json.Marshal(map[string]any{
		"id": created.ID, "version": found.Version, "schema": byID.Schema, "is_compatible": verdict.Is,
		"level": levels[0].Level.String(), "encoded": hex.EncodeToString(encoded), "deleted": deleted,
		"then": fmt.Sprint(err),
	})
	check(err)
	fmt.Println(string(said))
}
