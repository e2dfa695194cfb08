package client

import (
	"context"
	"io"
	"net/http"
)

// maxMetrics bounds what is read of a server's metrics.
const maxMetrics = 32 << 20

// Metrics returns what the server counts, in the text format of Prometheus.
func (c *Client) Metrics(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	req, err := c.request(ctx, http.MethodGet, "/metrics", nil)
	if err != nil {
		return "", err
	}
	req.Header.Set("Accept", "text/plain")
	resp, err := c.http.Do(req)
	if err != nil {
		return "", unreachable(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxMetrics))
	switch {
	case err != nil:
		return "", unreachable(err)
	case resp.StatusCode != http.StatusOK:
		return "", refused(resp, body)
	}
	return string(body), nil
}
