package corpus_test

import (
	"fmt"

	"go.yaml.in/yaml/v4"
)

// decision is the outcome of an uncertain entry where our specification settles
// the question that the sources leave open in another way than the stated
// outcome assumes. The stated outcome stays acceptable.
type decision struct {
	why    string
	expect string // as in expectations.yaml
}

// decided are the decisions by file.
var decided = map[string]decision{
	"e2e/fixtures/playbooks/save_storage_test/save_simple_test.yaml": {
		"a task of kind playbook waits for its child only when it says so, so the tables are not there yet", `
status: FAILED
steps_executed: [start, create_tables, truncate_tables]
step_order_matters: true
failed_step: truncate_tables
error_matches: relation "simple_test_(flat|nested)" does not exist
results: {create_tables: {status: started, async: true, path: fixtures/playbooks/save_storage_test/create_tables}}
child_executions: [{path: fixtures/playbooks/save_storage_test/create_tables, status: COMPLETED}]`,
	},
	"e2e/fixtures/playbooks/pagination/pipeline/test_pipeline_heavy_payload.yaml": {
		"braces in python code are no template unless spec.render asks for it", `
status: FAILED
steps_executed: [start]
step_order_matters: true
failed_step: start
error_matches: name 'payload_kb_per_item' is not defined`,
	},
	"e2e/fixtures/playbooks/load_test/reference_chain_loop_stress/reference_chain_loop_stress.yaml": {
		"a loop is a list in python; stats of it are had in templates", `
status: FAILED
steps_executed: [start, fetch_page, process_records, update_progress]
step_order_matters: true
failed_step: update_progress
error_matches: 'page loop undercount: expected 25, got 0'
loops: {process_records: {iterations: 25, mode: parallel}}
http_requests: {/api/v1/reference-chain/items: [200]}`,
	},
	"e2e/fixtures/playbooks/batch_execution/traveler_batch_enrichment_in_step/traveler_batch_enrichment_in_step.yaml": {
		"a loop is a list in python; results of it are had in templates", `
status: COMPLETED
steps_executed: [start, prepare_source_and_target, build_batch_plan, run_batch_workers, validate_persisted_results, summarize, end]
step_order_matters: true
results: {summarize: {data: {source_rows: 12, expected_rows: 12, stored_rows: 0, missing_rows: 12, max_batch_number: 0}}}
loops: {run_batch_workers: {iterations: 3, mode: sequential}}
child_executions:
- {path: fixtures/playbooks/batch_execution/traveler_batch_enrichment_chunk_worker, count: 3, status: COMPLETED}
http_requests: {/api/v1/users: 12 x 200}`,
	},
}

// decide adds our decisions to the alternatives of an entry.
func (e *entry) decide() error {
	d, ok := decided[e.Path]
	if !ok {
		return nil
	}
	if !e.Uncertain {
		return fmt.Errorf("%s is certain; there is nothing to decide", e.name())
	}
	var also expectation
	if err := yaml.Unmarshal([]byte(d.expect), &also); err != nil {
		return fmt.Errorf("the decision about %s: %w", e.name(), err)
	}
	e.Alternatives = append(e.Alternatives, also)
	return nil
}
