package main

import (
	"fmt"
	"strings"
)

// check is the test that must detect the mistake.
type check struct {
	pkg, run string
	args     []string
}

// drives returns a property test with this number of checks. It does not shrink what it finds.
func drives(test string, times int) check {
	return check{"./scheduler", test, []string{fmt.Sprintf("-rapid.checks=%d", times), "-rapid.shrinktime=1ms", "-rapid.nofailfile"}}
}

func (c check) String() string { return c.pkg + " " + c.run + " " + strings.Join(c.args, " ") }

var (
	// property drives leaders and views through all kinds of events, with more checks than `make
	// test`.
	property = drives("TestNothingIsLostOrDoubled", 2000)
	// two drives two leaders that live at the same time.
	two         = drives("TestTwoLeaders", 2000)
	another     = check{"./tracker", "TestReplacementOfAnotherJobIsIgnored", nil}
	kept        = check{"./scheduler", "TestLowWaterKeepsUnprovenFires", nil}
	buried      = check{"./scheduler", "TestMisroutedBurialIsRepeated", nil}
	oneDead     = check{"./scheduler", "TestBurialsAreRepeatedOnce", nil}
	undone      = drives("TestOperationsAreUndoneOnce", 1000)
	lone        = check{"./scheduler", "TestNextLeaderJournalsMissingKill|TestKillRefusedByJournalLeavesJobPending|TestOperationCountsKillsMissingFromJournal", nil}
	setClock    = check{"./scheduler", "TestClockSetBackDelaysNoRetry", nil}
	doubted     = check{"./scheduler", "TestCommandSeesReturnedFire", nil}
	repeated    = check{"./scheduler", "TestLowWaterKeepsWitness", nil}
	repeats     = check{"./scheduler", "TestRepetitionThatComesLateIsDropped", nil}
	early       = check{"./scheduler", "TestTriggeredJobIsNotFiredAgainWhenDue", nil}
	lingers     = check{"./scheduler", "TestLowWaterLingers", nil}
	silent      = check{"./scheduler", "TestSilent.*|TestUnansweredFires.*|TestNoGiveUp.*|TestLateAnswersAreIgnored", nil}
	lostOnes    = check{"./scheduler", "TestFireMissing.*|TestFireThatIs.*|TestCommandIsNotDone.*|TestTrial.*|TestFullWindow.*|TestGiveUp.*|TestSilent.*|TestUnanswered.*|TestEpochEnds.*|TestRepeatedFire.*|TestLateAnswerCloses.*|TestLateProbe.*", nil}
	windowed    = check{"./scheduler/ledger", "TestSilentFiresLeaveTheWindow", nil}
	provable    = check{"./scheduler", "TestProofOfQueues", nil}
	links       = check{"./scheduler", "TestLinksIdentifyBrokerRun|TestFreshLinks", nil}
	unseen      = check{"./scheduler", "TestWitnessThatIsNotSeen", nil}
	looks       = check{"./scheduler", "TestLooksAtOverloadedBroker", nil}
	waits       = check{"./scheduler", "TestLeaderWaitsForPredecessor", nil}
	fresh       = check{"./scheduler", "TestLeaderCrashWhileQueueIsNew", nil}
	passes      = check{"./broker", "TestLockPassesOnAfterAllPublishes", nil}
	locked      = check{"./broker", "TestExclusiveLockIsConsumedExclusively", nil}
	refusals    = check{"./broker", "TestReasonsOfRefusals", nil}
	awayTest    = check{"./scheduler", "TestLeaderFiresWithoutUnavailableQueues", nil}
	unreached   = check{"./scheduler", "TestLeaderFiresWithoutWitness", nil}
	gatedAway   = check{"./scheduler", "TestProbeThatComesBackWhileGatedIsAway", nil}
	lostRecords = check{"./scheduler", "Test.*JournalLost.*|TestBurialThatBothStreamsLost.*", nil}
	unrouted    = check{"./scheduler", "Test.*Copy.*|TestNextEpochKnowsHoles", nil}
	opening     = check{"./scheduler", "TestRecordThatBeginsEpoch.*", nil}
	claims      = check{"./scheduler", "TestOvertakenClaim.*|TestClaimRead.*", nil}
	begins      = check{"./scheduler", "TestNewestFireRuns|TestJobThatWaitsIsDropped", nil}
	behind      = check{"./scheduler", "TestLeaderLeavesReplica.*|TestWatchdog.*|TestPatience.*", nil}
	elsewhere   = check{"./view", "TestReadersLeaveReplicaThatIsCutOff|TestReadersAre.*|TestEndsOfStreams", nil}
	unsaid      = check{"./streams", "TestNodeThatCannotLocateStream", nil}
	slots       = drives("TestNothingIsLostOrDoubled", 300)
	ticks       = check{"./scheduler", "TestTicks.*|TestClockThat.*|TestOverlapp.*|TestPaused.*", nil}
	short       = check{"./view", "TestStreamThatLooksShortKeepsView", nil}

	takenBack = check{"./view", "TestLostUnconfirmedRecordsAreRolledBack", nil}
	lateOnes  = check{"./scheduler", "TestUnroutableLateFireArrivedInGated|TestLateBurialsAreNotRepeated", nil}
	rebuilt   = check{"./broker", "TestFireWithoutRouteIsNotJournaled", nil}
)
