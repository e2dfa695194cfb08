package keychain

import (
	"context"
	"errors"
	"strconv"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/secret"
	"github.com/noetl/noetl-go/internal/store"
)

// Registered opens the credentials of a store. It records nothing: who asks for
// them here records what becomes of them.
type Registered struct {
	Store store.Secrets
	Keys  Cipher
}

// OpenCredential implements Credentials. A number is taken for an id first.
func (r Registered) OpenCredential(ctx context.Context, nameOrID string) (Credential, error) {
	row, err := r.find(ctx, nameOrID)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return Credential{}, event.Errorf(event.NotFound, "there is no credential %q", nameOrID)
	case err != nil:
		return Credential{}, away("read a credential", err)
	}
	plain, err := r.Keys.Open(secret.CredentialRow(row.Name), row.Sealed)
	if err != nil {
		return Credential{}, err
	}
	return Credential{ID: row.ID, Name: row.Name, Type: row.Type, Data: plain}, nil
}

func (r Registered) find(ctx context.Context, nameOrID string) (store.Credential, error) {
	if id, err := strconv.ParseInt(nameOrID, 10, 64); err == nil && id > 0 {
		c, err := r.Store.CredentialByID(ctx, event.ID(id))
		if !errors.Is(err, store.ErrNotFound) {
			return c, err
		}
	}
	return r.Store.Credential(ctx, nameOrID)
}
