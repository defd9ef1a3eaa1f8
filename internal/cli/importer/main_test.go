package importer

import (
	"testing"

	"github.com/millrace-jobs/millrace/internal/brokertest"
)

func TestMain(m *testing.M) { brokertest.Main(m) }
