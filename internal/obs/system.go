package obs

// States of connections to the database.
const (
	ConnOpen = "open"
	ConnIdle = "idle"
	ConnMost = "max"
)

// Tasks that servers hold leases of.
const (
	TaskMachine   = "machine_id" // the number by which the ids of a server differ from those of others
	TaskRetention = "retention"  // removing executions whose time is over
)

// System is what a server stands on.
type System struct {
	DatabaseUp      Gauge
	BrokerUp        Gauge
	Connections     Gauge   // state
	DiskFree        Gauge   // bytes where the data directory is
	DiskSize        Gauge   // bytes
	ObjectOps       Counter // backend, op, outcome
	LeaseHeld       Gauge   // task
	PendingCommands Table   // pool
	PoolWorkers     Table   // pool
	PoolSlots       Table   // pool
	ConsumerLag     Table   // stream, consumer
}

// Operations on objects.
const (
	ObjectPut    = "put"
	ObjectOpen   = "get"
	ObjectDelete = "delete"
)

func newSystem(r *Registry) System {
	return System{
		DatabaseUp: r.Gauge("noetl_database_up", "1 while the database answers."),
		BrokerUp:   r.Gauge("noetl_broker_up", "1 while the broker of commands is connected."),
		Connections: r.Gauge("noetl_database_connections", "Connections to the database.",
			Label{Name: "state", Values: []string{ConnOpen, ConnIdle, ConnMost}}),
		DiskFree: r.Gauge("noetl_disk_free_bytes", "Bytes that are free where the data directory is."),
		DiskSize: r.Gauge("noetl_disk_size_bytes", "Bytes there are where the data directory is."),
		ObjectOps: r.Counter("noetl_object_store_ops_total", "Operations on values kept outside of the database.",
			Label{Name: "backend", Values: []string{"file", "nats", "s3"}}, Label{Name: "op", Values: []string{ObjectPut, ObjectOpen, ObjectDelete}},
			Label{Name: "outcome", Values: []string{OK, Error}}),
		LeaseHeld:       r.Gauge("noetl_lease_held", "1 while this server holds the lease of a task.", Label{Name: "task", Values: []string{TaskMachine, TaskRetention}}),
		PendingCommands: r.Table("noetl_commands_pending", "Commands that wait for a worker.", "pool"),
		PoolWorkers:     r.Table("noetl_pool_workers", "Workers of a pool that have been heard of lately.", "pool"),
		PoolSlots:       r.Table("noetl_pool_slots", "Commands that they can run at once.", "pool"),
		ConsumerLag:     r.Table("noetl_nats_consumer_lag", "Notifications the broker holds that were not delivered yet.", "stream", "consumer"),
	}
}
