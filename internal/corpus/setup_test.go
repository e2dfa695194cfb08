package corpus_test

import (
	"context"
	"fmt"
	"net/http"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/noetl/noetl-go/client"
)

// stage is an entry with all that it runs in.
type stage struct {
	*scene
	lane    *lane
	shelf   *shelf
	entries []*entry
	entry   *entry
}

const (
	stressTables = `
CREATE TABLE public.stress_test_items (item_id int PRIMARY KEY, group_id int NOT NULL);
CREATE TABLE public.stress_test_results (item_id int PRIMARY KEY, result_data jsonb, processed_at timestamptz DEFAULT now());
INSERT INTO public.stress_test_items SELECT n, n % 3 FROM generate_series(1, 20) AS n;`

	heavyTables = `
CREATE TABLE public.heavy_payload_source (execution_id text NOT NULL, item_id int NOT NULL, item_key text NOT NULL, PRIMARY KEY (execution_id, item_id));
CREATE TABLE public.heavy_payload_results (execution_id text NOT NULL, item_id int NOT NULL, PRIMARY KEY (execution_id, item_id));`

	travelerTable = `
CREATE TABLE public.traveler_batch_source (execution_id text NOT NULL, traveler_id int NOT NULL, traveler_name text NOT NULL, PRIMARY KEY (execution_id, traveler_id));`

	fourAssessments = `
TRUNCATE public.pft_test_mds_assessment_ids_work, public.pft_test_mds_assessment_details;
INSERT INTO public.pft_test_mds_assessment_ids_work (assessment_id, pcc_patient_id, facility_mapping_id)
SELECT 'MDS-T-' || n, n, 0 FROM generate_series(1, 4) AS n;`

	pftFlow = "e2e/fixtures/playbooks/pft_flow_test/test_pft_flow.yaml"
)

// setups are what the setup lines of entries ask for, by their words. Every
// document that an entry names is registered without being asked for.
var setups = map[string]func(context.Context, *stage) error{
	"register automation/examples/build_child.yaml and deploy_child.yaml; the paths are file-relative ./build_child.yaml, " +
		"a catalog needs aliases or the override of tool.path": nil,
	"register save_storage_test/create_tables.yaml":                                                               nil,
	"register kind_playbook_lease_expiry_worker":                                                                  nil,
	"register heavy_payload_pipeline_chunk_worker":                                                                nil,
	"register traveler_batch_enrichment_chunk_worker":                                                             nil,
	"child must be registered under tests/fixtures/playbooks/batch_execution/heavy_payload_pipeline_chunk_worker": nil,
	"child under tests/fixtures/playbooks/batch_execution/traveler_batch_enrichment_chunk_worker":                 nil,
	"register sub_ingest_default.yaml and sub_ingest_priority.yaml, then the subscription, then activate it":      nil,

	"run save_storage_test/create_tables.yaml first":                                                       runFirst("e2e/fixtures/playbooks/save_storage_test/create_tables.yaml"),
	"run test_pft_flow first (table pft_test_patient_work_queue)":                                          runFirst(pftFlow),
	"POST <TEST_API>/api/v1/flaky/reset":                                                                   post("<TEST_API>/api/v1/flaky/reset"),
	"stress_test_items with 20 rows, empty stress_test_results (item_id, result_data jsonb, processed_at)": prepare(stressTables),
	"as in the parent": prepare(stressTables),
	"tables heavy_payload_source / heavy_payload_results must exist": prepare(heavyTables),
	"table traveler_batch_source must exist":                         prepare(travelerTable),
	"tables from test_pft_flow; insert 4 rows MDS-T-1..4 with facility_mapping_id 0 into pft_test_mds_assessment_ids_work": inOrder(
		runFirst(pftFlow), prepare(fourAssessments)),
}

// setUp does what an entry asks for before it runs.
func (st *stage) setUp(ctx context.Context, natsURL string) error {
	for _, line := range st.entry.Setup {
		do, ok := setups[line]
		if !ok {
			return fmt.Errorf("setup %q: say in this test how to do that", line)
		}
		if do == nil {
			continue
		}
		if err := do(ctx, st); err != nil {
			return fmt.Errorf("setup %q: %w", line, err)
		}
	}
	if st.entry.needs("KV bucket sessions") {
		return bucket(ctx, natsURL, "sessions")
	}
	return nil
}

func inOrder(all ...func(context.Context, *stage) error) func(context.Context, *stage) error {
	return func(ctx context.Context, st *stage) error {
		for _, do := range all {
			if err := do(ctx, st); err != nil {
				return err
			}
		}
		return nil
	}
}

func prepare(sql string) func(context.Context, *stage) error {
	return func(ctx context.Context, st *stage) error { return perform(ctx, st.dsn, sql) }
}

func post(target string) func(context.Context, *stage) error {
	return func(ctx context.Context, st *stage) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, st.places.Replace(target), http.NoBody)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s", target, resp.Status)
		}
		return nil
	}
}

// runFirst runs a playbook to its end, with the input of its own entry.
func runFirst(file string) func(context.Context, *stage) error {
	return func(ctx context.Context, st *stage) error {
		for _, e := range st.entries {
			if e.Path != file {
				continue
			}
			payload, err := e.payload(st.places)
			if err != nil {
				return err
			}
			reg, err := st.lane.register(ctx, st.shelf, st.shelf.byFile[file])
			if err != nil {
				return err
			}
			a, err := st.lane.client.Execute(ctx, client.ExecuteRequest{CatalogID: reg.CatalogID, Payload: payload})
			if err != nil {
				return err
			}
			end, err := st.lane.client.Wait(ctx, a.ExecutionID)
			if err == nil && end.Status != client.Completed {
				err = fmt.Errorf("%s: %s", end.Status, end.Error)
			}
			return err
		}
		return fmt.Errorf("there is no entry of %s", file)
	}
}

// bucket makes a key-value bucket.
func bucket(ctx context.Context, url, name string) error {
	nc, err := nats.Connect(url)
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	_, err = js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: name})
	return err
}
