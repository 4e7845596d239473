package acme

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestGroupProtocol has Fencepost start the broker as fencepost.toml says, and test it. With -short it plays the smoke
// scenarios, in a quarter of a minute; without, everything, which takes some minutes, or until -timeout is near.
// FENCEPOST is the command of the kit, such as "python3 fencepost.pyz"; FENCEPOST_ARGS are further arguments.
func TestGroupProtocol(t *testing.T) {
	words := strings.Fields(os.Getenv("FENCEPOST"))
	if len(words) == 0 {
		words = []string{"fencepost"}
	}
	words = append(words, "test", "--profile", "fencepost.toml")
	if testing.Short() {
		words = append(words, "--smoke")
	} else if deadline, ok := t.Deadline(); ok {
		words = append(words, "--seconds", fmt.Sprint(int(time.Until(deadline).Seconds()*0.9)))
	}
	words = append(words, strings.Fields(os.Getenv("FENCEPOST_ARGS"))...)
	report, err := exec.Command(words[0], words[1:]...).Output()
	var exit *exec.ExitError
	switch {
	case err == nil:
		t.Logf("%s", report)
	case errors.As(err, &exit) && exit.ExitCode() == 1:
		t.Fatalf("the broker violates the group protocol\n%s", report)
	case errors.As(err, &exit) && exit.ExitCode() == 3:
		t.Fatalf("the run was cut short, or something stayed undecided\n%s", report)
	case errors.As(err, &exit):
		t.Fatalf("Fencepost could not run\n%s", exit.Stderr)
	default:
		t.Fatalf("Fencepost is not installed: %v", err)
	}
}
