// Package engine says what happens next. State is the fold of an execution's
// log; Decide looks at a state and returns, as one ordered plan, the events
// that must follow. The package is pure: no clock, randomness, goroutine or
// I/O. The same log prefix always gives the same decision, whichever replica
// asks and however the events arrived.
//
// The host's duties, in this order, for each batch of inputs:
//
//  1. Begin, then Apply each input event to the state.
//  2. Decide. It applies the events it makes, so state and plan agree.
//  3. Append inputs and plan to the log as one batch.
//  4. Commit when the append succeeded; Rollback when somebody else appended
//     first, then apply what they wrote and start again at 1.
//  5. Hand out the commands of the plan. Only a durable plan is acted upon.
package engine
