package obs

import "golang.org/x/sys/unix"

// Disk tells the bytes that are free to this process and those there are where
// a directory lies.
func Disk(dir string) (free, size uint64, err error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, 0, err
	}
	block := uint64(s.Bsize)
	return s.Bavail * block, s.Blocks * block, nil
}
