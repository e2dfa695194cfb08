package client

import (
	"context"

	"github.com/noetl/noetl-go/internal/event"
)

// How a worker asks for the credentials of a command.
type (
	// SecretRequest names the command and the aliases.
	SecretRequest = event.SecretRequest
	// SecretAnswer brings them, sealed for the key the worker registered.
	SecretAnswer = event.SecretAnswer
	// Secret is one of them, opened.
	Secret = event.Secret
)

// ResolveSecrets asks for credentials on behalf of a command that the worker
// holds. Forbidden when it does not, BadRequest when it registered no public key,
// NotFound when an alias leads nowhere.
func (c *Client) ResolveSecrets(ctx context.Context, r SecretRequest) (SecretAnswer, error) {
	var a SecretAnswer
	err := c.post(ctx, "/api/secrets/resolve", r, &a)
	return a, err
}
