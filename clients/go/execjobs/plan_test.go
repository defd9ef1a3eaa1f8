package execjobs

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestInvalidPlans(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                       "there are no classes",
		"clases: {}":                             "field clases not found",
		"classes: {A: {}}":                       "needs a command or a shell line",
		"classes: {A: {command: [x], shell: y}}": "and not both",
		"classes: {A: {command: [x], timeout: -1s}}":  "negative time",
		"classes: {A: {command: [x], timeout: soon}}": "soon",
	} {
		_, err := Read(strings.NewReader(text))
		require.ErrorContains(t, err, want, text)
	}
	plan, err := Read(strings.NewReader("queues: {a: 0}\nclasses: {A: {command: [x]}}"))
	require.NoError(t, err)
	_, err = plan.Worker("amqp://localhost", nil)
	require.ErrorContains(t, err, "weight 0")
}
