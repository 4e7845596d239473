package acme

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestGroupProtocol has Fencepost start the broker as fencepost.toml says, and test it.
// FENCEPOST is the command of the kit, such as "python3 fencepost.pyz"; FENCEPOST_ARGS are further arguments.
func TestGroupProtocol(t *testing.T) {
	words := strings.Fields(os.Getenv("FENCEPOST"))
	if len(words) == 0 {
		words = []string{"fencepost"}
	}
	words = append(words, "test", "--profile", "fencepost.toml", "--quiet")
	words = append(words, strings.Fields(os.Getenv("FENCEPOST_ARGS"))...)
	report, err := exec.Command(words[0], words[1:]...).CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
		t.Logf("%s", report)
	case errors.As(err, &exit) && exit.ExitCode() == 1:
		t.Fatalf("the broker violates the group protocol\n%s", report)
	case errors.As(err, &exit) && exit.ExitCode() == 3:
		t.Fatalf("something stayed undecided\n%s", report)
	default:
		t.Fatalf("Fencepost could not run: %v\n%s", err, report)
	}
}
