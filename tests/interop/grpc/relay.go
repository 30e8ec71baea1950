// SPDX-License-Identifier: Apache-2.0
package e2e

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// listens is the relay's log line about its address.
var listens = regexp.MustCompile(`listening for clients.*?(127\.0\.0\.1:\d+)`)

// throughRelay starts a relay in front of a server for the time of a test, and returns the relay's address. RELAY_CONFIG has its configuration,
// with SERVER for the server's address; without it there is no relay.
func throughRelay(t *testing.T, server string) string {
	t.Helper()
	if os.Getenv("RELAY_CONFIG") == "" {
		return server
	}
	config := strings.ReplaceAll(os.Getenv("RELAY_CONFIG"), "SERVER", server)
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
