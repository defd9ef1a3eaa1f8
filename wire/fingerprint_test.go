package wire

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The cheap tests do not change the result of the expressions.
func TestFingerprintShortcutsChangeNothing(t *testing.T) {
	part := rapid.OneOf(rapid.StringMatching(`[ -~\t\f]{0,6}`), rapid.StringMatching(`[0-9a-fA-F]{1,12}`), rapid.SampledFrom([]string{
		"123e4567-e89b-12d3-a456-426614174000", "ann@example.com", "0X1f", "0xg", "deadbeef1", "'a b'", "1.2,3:4", "  ", " ", "-", "é", "\u00a0"}))
	rapid.Check(t, func(t *rapid.T) {
		message := ""
		for _, p := range rapid.SliceOfN(part, 0, 12).Draw(t, "parts") {
			message += p
		}
		for _, v := range volatile {
			all := v.what.ReplaceAllString(message, v.sign)
			if !v.may(message) {
				require.Equal(t, all, message, v.what.String())
			}
			message = all
		}
	})
}

func BenchmarkFingerprint(b *testing.B) {
	for range b.N {
		Fingerprint("SyncInventory", "Timeout", "no answer from 10.0.3.17 within 3000 ms")
	}
}
