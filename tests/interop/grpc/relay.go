package e2e

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"
)

// listens is the relay's log line about its address.
var listens = regexp.MustCompile(`listening for clients.*?(127\.0\.0\.1:\d+)`)

// throughRelay starts a relay in front of a management server for the time of a test, and returns the relay's address.
func throughRelay(t *testing.T, server string) string {
	t.Helper()
	// The server has a snapshot for each id of a node.
	config := fmt.Sprintf("upstream: { xds_servers: [{ server_uri: 'http://%s' }] }\nclasses: [{ key: [id], node: client }]\n", server)
	file := filepath.Join(t.TempDir(), "relay.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	relay := exec.Command(os.Getenv("DISTRIBUTARY_BIN"), "serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", file)
	log, err := relay.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := relay.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The second signal ends it without waiting for its clients.
		for range 2 {
			relay.Process.Signal(syscall.SIGINT)
			time.Sleep(50 * time.Millisecond)
		}
		relay.Wait()
	})
	found := make(chan string, 1)
	go func() {
		for lines := bufio.NewScanner(log); lines.Scan(); {
			if match := listens.FindStringSubmatch(lines.Text()); match != nil {
				found <- match[1]
			}
		}
	}()
	select {
	case address := <-found:
		return address
	case <-time.After(20 * time.Second):
		t.Fatal("the relay does not listen")
		return ""
	}
}
