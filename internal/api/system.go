package api

import (
	"net/http"
	"os"
	"time"
)

type systemAnswer struct {
	System struct {
		CPU       float64 `json:"cpu_percent"`
		Memory    float64 `json:"memory_percent"`
		Total     float64 `json:"total_memory_mb"`
		Used      float64 `json:"used_memory_mb"`
		Available float64 `json:"available_memory_mb"`
	} `json:"system"`
	Process struct {
		PID     int       `json:"pid"`
		CPU     float64   `json:"cpu_percent"`
		RSS     float64   `json:"memory_rss_mb"`
		VMS     float64   `json:"memory_vms_mb"`
		Threads int       `json:"num_threads"`
		Start   time.Time `json:"start_time"`
		Uptime  int64     `json:"uptime_seconds"`
	} `json:"process"`
}

// system tells how busy the machine and the process were since it was asked
// the last time.
func (s *Server) system(w http.ResponseWriter, _ *http.Request) error {
	const mb = 1 << 20
	var a systemAnswer
	u := s.machine.Read()
	a.System.CPU = tenths(u.CPUPercent)
	a.System.Total, a.System.Available = tenths(float64(u.MemTotal)/mb), tenths(float64(u.MemFree)/mb)
	if u.MemTotal > u.MemFree {
		used := float64(u.MemTotal - u.MemFree)
		a.System.Used, a.System.Memory = tenths(used/mb), tenths(100*used/float64(u.MemTotal))
	}
	a.Process.PID, a.Process.Threads = os.Getpid(), u.Threads
	a.Process.CPU, a.Process.RSS, a.Process.VMS = tenths(u.ProcessCPUPercent), tenths(float64(u.RSS)/mb), tenths(float64(u.VMS)/mb)
	a.Process.Start = s.began.UTC()
	a.Process.Uptime = int64(s.opt.Clock().Sub(s.began).Seconds())
	return respond(w, a)
}

func tenths(v float64) float64 { return float64(int64(v*10+0.5)) / 10 }
