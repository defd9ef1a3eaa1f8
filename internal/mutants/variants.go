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
	behind      = check{"./scheduler", "TestLeaderLeavesReplica.*|TestWatchdog.*|TestPatience.*", nil}
	elsewhere   = check{"./view", "TestReadersLeaveReplicaThatIsCutOff|TestReadersAre.*|TestEndsOfStreams", nil}
	unsaid      = check{"./streams", "TestNodeThatCannotLocateStream", nil}
	ticks       = check{"./scheduler", "TestTicks.*|TestClockThat.*|TestOverlapp.*|TestPaused.*", nil}
	short       = check{"./view", "TestStreamThatLooksShortKeepsView", nil}

	takenBack = check{"./view", "TestLostUnconfirmedRecordsAreRolledBack", nil}
	lateOnes  = check{"./scheduler", "TestUnroutableLateFireArrivedInGated|TestLateBurialsAreNotRepeated", nil}
	rebuilt   = check{"./broker", "TestFireWithoutRouteIsNotJournaled", nil}
)

// variant is one way to break the code.
type variant struct {
	name, what     string
	file, from, to string
	test           check
}

var variants = []variant{
	{"settling-left-out", "a new leader settles nothing", "scheduler/reconcile.go", "\t\tr.open = append(r.open, d)\n", "", property},
	{"settling-last-epoch-only", "a new leader settles what the last epoch left, and nothing older", "scheduler/reconcile.go",
		"\t\tr.open = append(r.open, d)\n", "\t\tif d.Epoch >= r.entries.State().LastLed {\n\t\t\tr.open = append(r.open, d)\n\t\t}\n", property},
	{"watermark-off-by-one", "one more is said to be confirmed than is", "scheduler/ledger/ledger.go",
		"m := p.Build(seq, l.watermark)", "m := p.Build(seq, l.watermark+1)", property},
	{"known-confirmed-off-by-one", "a leader that lost its connection claims one more confirm than it had", "scheduler/ledger/ledger.go",
		"Through: l.watermark, Above", "Through: l.watermark + 1, Above", property},
	{"above-unsaid", "the journal learns only up to which number everything is confirmed", "scheduler/ledger/window.go",
		`if n.header != "" {`, `if n.header != "" && false {`, property},
	{"above-off-by-one", "a number above the watermark is called confirmed that is not", "scheduler/ledger/window.go",
		"n.above.Add(seq)", "n.above.Add(seq).Add(seq + 1)", property},
	{"cut-off-unasked", "a leader waits for what a replica that is cut off does not have", "scheduler/watchdog.go",
		"case !canMove:", "case canMove:", behind},
	{"open-impatient", "a slow broker gets no more time than one that forgot a publish", "scheduler/watchdog.go",
		"min(first<<min(u.epochs, 4), openWithin)", "first", behind},
	{"claim-overtaken", "a leader waits for its claim, though an earlier leader's arrived behind it", "scheduler/opening.go",
		"now.Sub(o.unread) > overtakenAfter", "false", claims},
	{"claim-not-repeated", "a leader waits for its claim, though the journal lost it", "scheduler/opening.go",
		"lost, err = o.lost(now, wire.Journal)", "lost, err = false, nil", opening},
	{"claim-repeated-late", "a leader claims again that another has followed", "scheduler/opening.go",
		"if state.Epoch == o.before {\n\t\t\tlost", "if true {\n\t\t\tlost", claims},
	{"barrier-not-repeated", "a leader waits for a barrier that its stream lost", "scheduler/opening.go",
		"if err == nil && lost {", "if err == nil && lost && false {", opening},
	{"opening-stubborn", "a leader writes to a stream for ever that confirms everything and keeps nothing", "scheduler/opening.go",
		"o.losses[stream] > mostLosses", "false", opening},
	{"barrier-counts-twice", "a barrier that was written again counts as another leader's", "tracker/leadership.go",
		"if seen && b.Epoch == before.Epoch &&", "if false &&", check{"./tracker", "TestBarrierThatWasWrittenTwice", nil}},
	{"overtaken-barrier-voids", "a view that retention overtook takes what newer leaders carried over for void", "tracker/state.go",
		"!b.Overtaken && ", "", check{"./tracker", "TestOvertakenView.*", nil}},
	{"overtaken-unnoticed", "a connected reader that retention has overtaken reads on", "view/resume.go",
		"first > g.last:", "first > next:", check{"./view", "TestConnectedView.*", nil}},
	{"replica-lacks-unnoticed", "a connected reader takes what its replica lacks for unused offsets", "view/resume.go",
		"case at < next:\n\t\treturn fmt", "case at < 0:\n\t\treturn fmt", check{"./view", "TestConnectedView.*", nil}},
	{"lagging-barrier-trusted", "an overtaken view takes the barrier of a leader that had read nothing since for the newest", "tracker/leadership.go",
		"&& b.Read < first-1", "&& false", check{"./tracker", "TestOvertakenView.*", nil}},
	{"overtaken-burial-uncounted", "burials of a leader whose barrier retention took are not compared", "tracker/leadership.go",
		"seen && b.Overtaken && at", "seen && false && at", check{"./tracker", "TestOvertakenView.*", nil}},
	{"announcement-hidden", "a replacement that is written cannot be found until the table shows the batch", "tracker/announced.go",
		"\t\tt.shown.lower(id.stream, id.offset)\n", "", check{"./tracker", "TestAnnouncements.*", nil}},
	{"announcement-shown-early", "a replacement cannot be found while the batch that removes it is not written", "tracker/announced.go",
		"\tclear(t.left)\n\treturn nil", "\tt.show()\n\tclear(t.left)\n\treturn nil", check{"./tracker", "TestAnnouncements.*", nil}},
	{"reused-offset-unannounced", "what the journal says of a replacement that the stream lost counts for the one at its offset", "tracker/announced.go",
		"journaled && tag == a.JIDTag", "journaled && tag != \"\"", check{"./tracker", "TestReusedOffset.*", nil}},
	{"late-record-removes", "a record of a replacement that the stream lost removes the announcement at its offset", "tracker/announced.go",
		"a.JIDTag != tag", "a.JIDTag == \"\"", check{"./tracker", "TestReusedOffset.*", nil}},
	{"stale-end", "a record counts as lost by what the broker said before it was confirmed", "view/ends.go",
		"p.end.askedAt.After(since) && ", "", check{"./view", "TestHasReadToEnd.*", nil}},
	{"claim-awaited", "an epoch ends because its claim, which the view has read, was never confirmed", "scheduler/ledger/answers.go",
		"\t\tif p.Plain {\n\t\t\tl.abandon", "\t\tif !p.Plain {\n\t\t\tl.abandon", claims},
	{"lost-stays", "an epoch continues though the journal lost what the broker had confirmed", "scheduler/ledger/fold.go",
		"if l.cfg.View.Lacks(l.epoch, newest.seq)", "if newest.seq < 0", lostRecords},
	{"lost-void", "a fire that was refused counts as confirmed before the view has the record that takes it back", "scheduler/ledger/ledger.go",
		"p.void.Confirmed = func() { p.acked = true }", "p.void.Confirmed = func() { p.acked = true; l.pass(p.seq) }", lostRecords},
	{"lost-burial", "a kill is journaled before the view has its burial", "scheduler/actions.go",
		"return a.ledger.AfterFold(burial.Seq(), note)", "return note()", lostRecords},
	{"lost-newest", "a leader that does nothing more does not learn that the journal lost its newest record", "scheduler/ledger/answers.go",
		"folded < l.seq && l.Drained()", "folded < l.seq && !l.Drained()", lostRecords},
	{"copy-lost", "a copy that jobs.gated has lost is not published again", "scheduler/unrouted.go",
		"return false, u.publishCopy(f)", "return false, nil", unrouted},
	{"copy-lost-in-model", "the same, found by the model", "scheduler/unrouted.go",
		"return false, u.publishCopy(f)", "return false, nil", property},
	{"copy-refused", "a fire that was refused gets a copy too", "scheduler/fire.go",
		"\td.unrouted.needsNoCopy(dispatch{", "\t_ = (dispatch{", unrouted},
	{"copy-unread", "a copy counts as lost that the view has not read yet", "scheduler/unrouted.go",
		"f.behind > shown:", "f.behind > u.sent:", unrouted},
	{"copy-left", "the next epoch of a claim does not know which copies are missing", "scheduler/core.go",
		"c.ledger.Unanswered(), c.unrouted.waiting}", "c.ledger.Unanswered(), nil}", unrouted},
	{"copy-first", "a copy that came before its fire came back counts as missing", "scheduler/unrouted.go",
		"!needsNone {", "!needsNone || true {", unrouted},
	{"copy-between", "a copy that the view reads before the epoch leads counts as missing", "scheduler/copies.go",
		"if _, err := c.takeNew(); err != nil {", "if c.entries.TakeCopies(); err != nil {", unrouted},
	{"hole-forgotten", "the next epoch of a claim does not know what has no answer", "scheduler/ledger/answers.go",
		"for tag := range gone {", "for tag := range map[uint64]bool{} {", unrouted},
	{"cut-off-stays", "a reader stays at a replica that is cut off", "view/ends.go", "t.stop(streams.ErrMoved)", "_ = streams.ErrMoved", elsewhere},
	{"cut-off-hasty", "a reader moves as soon as there is more", "view/ends.go", "case e.behindAt != at:\n\t\te.behindAt", "case e.behindAt == unmoved:\n\t\te.behindAt", elsewhere},
	{"cut-off-again", "a reader moves again and again for an end that no node has", "view/ends.go", "case e.movedFor != e.last || now.Sub(e.movedAt) >= moveAgain:", "default:", elsewhere},
	{"unsaid-waits", "a question waits for a node that is cut off", "streams/native_query.go", "within(ctx, keptEach,", "within(ctx, t.cfg.Timeout,", unsaid},
	{"cut-off-new", "a reader that has just begun moves", "view/ends.go", " || now.Sub(e.connectedAt) < settlesIn", "", elsewhere},
	{"cut-off-start", "a reader moves that reads from behind the end", "view/ends.go", "at := max(position, e.start-1)", "at := position", elsewhere},
	{"unanswered-busy", "answers that were not looked at count as missing", "scheduler/watchdog.go",
		"w.last.phase == phaseLeading || !w.awaits:", "w.last.phase == phaseLeading:", behind},
	{"silent-in-window", "fires of a silent queue take the place of the others'", "scheduler/ledger/window.go",
		"len(w.open)-w.aside < MaxOpen", "len(w.open) < MaxOpen", windowed},
	{"given-up-unread", "a fire is given up on that the journal may not have", "scheduler/ledger/answers.go",
		" && p.seq <= folded", " && (true || p.seq <= folded)", silent},
	{"given-up-twice", "a fire that was given up on is returned once more when its answer comes", "scheduler/ledger/answers.go",
		"l.gone[tag] = true\n\treturn l.takeOut(tag)", "return l.open[tag]", silent},
	{"passed-over-unjournaled", "a fire that the journal lacks is called delivered", "scheduler/silence.go", "if arrived && journaled &&", "if arrived && (journaled || true) &&", lostOnes},
	{"passed-over-counted", "a fire that the journal lacks is taken off what its operation has done", "scheduler/fire.go",
		"\tif journaled {\n", "\tif true {\n", lostOnes},
	{"passed-over-in-the-window", "what is given up on is counted among what is set aside", "scheduler/ledger/window.go",
		"if p.aside {", "if p.aside && false {", lostOnes},
	{"passed-over-holds-a-trial", "a queue on trial waits for what is set aside", "scheduler/dispatch.go",
		"q.trial && q.unconfirmed > q.Aside", "q.trial && q.unconfirmed > 0", lostOnes},
	{"passed-over-leaves-full", "a queue whose window was full of lost fires stays out of the ring", "scheduler/fire.go",
		"it.queue.full = false\n\t\t\td.queues.wakeAt(it.queue, time.Time{})\n\t\t} else {", "} else {", lostOnes},
	{"passed-over-is-held", "a queue is held for a fire that it has passed over", "scheduler/fire.go",
		"why == ledger.NoAnswer && it.PassedOver()", "false", lostOnes},
	{"silent-untried", "a queue whose newest fire was lost gets no other", "scheduler/silence.go", "silent && !q.tried &&", "false &&", lostOnes},
	{"silent-stops-operations", "operations wait for what is set aside", "scheduler/ledger/window.go",
		"len(w.open)-w.aside < most", "len(w.open) < most", lostOnes},
	{"confirmed-lost", "a lost record of what is confirmed ends the epoch", "scheduler/ledger/answers.go",
		"if tag < l.journal {", "if tag < l.journal && p.Confirmed != nil {", lostOnes},
	{"probe-lost", "a lost probe stops all that is fired", "scheduler/ledger/answers.go",
		"if tag < l.journal {", "if tag < l.journal && p.Confirmed == nil {", lostOnes},
	{"probes-lost-for-ever", "a broker that answers no probe keeps its leader", "scheduler/routing.go", "r.lost > maxLostProbes", "false", lostOnes},
	{"hole-for-ever", "memory grows behind a publish without an answer", "scheduler/ledger/answers.go",
		"if a.hole == 0 || tag < a.hole {", "if false {", lostOnes},
	{"last-fire-undecided", "a fire that nothing follows is not decided", "scheduler/ledger/answers.go",
		"\t\tif tag > l.numbered {", "\t\tif false {", lostOnes},
	{"last-record-stuck", "a record without an answer that nothing follows stops all queues", "scheduler/ledger/answers.go",
		"\t\t\tl.waits = max(l.waits, tag)\n\t\t}\n\t\tif p.Queue == nil", "\t\t}\n\t\tif p.Queue == nil", lostOnes},
	{"refire-in-doubt", "a repeated fire that the journal lacks leaves its entry in doubt", "scheduler/fire.go",
		"it.doubt != nil && !journaled", "false", lostOnes},
	{"hole-stays", "an answer that comes late leaves the hole", "scheduler/ledger/answers.go", "delete(l.gone, tag)", "_ = l.gone", lostOnes},
	{"proof-of-a-cluster", "a witness on one node is believed for all nodes", "scheduler/proof.go", "return proves || p.alone && !known", "return proves || !known", provable},
	{"links-not-compared", "a link that broke and came back is not noticed", "broker/witness.go", "{f.Nodes, f.Links} {", "{f.Nodes} {", links},
	{"old-links-believed", "links are compared as they were before the old leader ended", "scheduler/fingerprint.go", "n.Running && n.Uptime <= first[n.Name]", "false", links},
	{"witness-missed-at-once", "a witness that is not seen for a moment is taken for a lost one", "scheduler/witness.go",
		"return undecided, oneGone, nil", "return gone, oneGone, nil", unseen},
	{"witness-not-seen", "a broker whose witness does not answer is believed not to have restarted", "scheduler/fingerprint.go",
		"l.last = saw\n", "l.last, saw = allSeen, allSeen\n", unseen},
	{"sight-forgotten", "a node that is silent now and then prevents a verdict", "scheduler/fingerprint.go",
		"now.Sub(l.taken) > linksAge {", "l.last != allSeen {", looks},
	{"links-long-ago", "links speak for what was fired after they were first reported", "scheduler/fingerprint.go",
		"saw == allSeen && fresh && now.Sub(l.taken) <= linksAge {", "saw == allSeen && fresh {", looks},
	{"first-probe-unfollowed", "a leader of a short epoch leaves the journal of all before it to read", "scheduler/routing.go",
		"r.since, r.unseen = probeAlways, followEvery", "r.since = probeAlways", check{"./scheduler", "TestShortEpochsFollowTheirProbe", nil}},
	{"silent-api-decides", "a management API that does not answer once is taken for a restart", "scheduler/witness.go",
		"return undecided, noAnswer, nil\n\tcase err != nil:", "return gone, noAnswer, nil\n\tcase err != nil:", check{"./scheduler", "TestHangingManagementAPI", nil}},
	{"unread-proof-decides", "queues that could not be listed once are taken to prove nothing", "scheduler/reconcile.go",
		"r.verdict == undecided && r.proof.unread", "false", property},
	{"settled-undecided", "a fire is called delivered before it is known whether a link broke", "scheduler/reconcile.go",
		"if r.verdict == undecided && r.provable(&d) && !r.isCopied(&d) {", "if false {", property},
	{"witness-covers-earlier", "a new witness is believed about what was fired before it", "tracker/leadership.go",
		"s.Witness, s.WitnessFrom = standing, wire.Through{Epoch: r.Epoch, Through: seq}", "s.Witness = standing\n\t\t_ = seq", property},
	{"low-water-settles-waiting", "low water passes while fires of earlier epochs are in doubt", "scheduler/carry.go",
		"d.Returned || d.Epoch < c.ledger.Epoch()", "d.Returned", property},
	{"proof-of-quorum-queues", "a quorum queue is believed to have what was fired to it", "scheduler/proof.go", `q.Type == "classic" && `, "", provable},
	{"low-water-one-too-high", "low water is above an entry that is pending", "scheduler/carry.go", "low[stream] = cut + 1", "low[stream] = cut + 2", property},
	{"low-water-too-soon", "low water is moved before all that stands below it is carried over", "scheduler/carry.go",
		"if !done || len(c.run.sent) > 0 {", "if false {", property},
	{"low-water-does-not-linger", "low water is moved before the broker has brought to its disk what was carried over", "scheduler/carry.go",
		"if c.run.linger > 0 {", "if false {", lingers},
	{"buried-again", "a leader enters a dead job again that an earlier one had entered", "scheduler/misrouted.go", " || d.At.Equal(e.At)", "", oneDead},
	{"journal-bound-first", "jobs.fire is bound to the journal before it is bound to the queues", "broker/routing.go",
		"{{wire.ExchangeFire, wire.ExchangeRoute, false}, {wire.ExchangeFire, wire.Journal, true}}",
		"{{wire.ExchangeFire, wire.Journal, true}, {wire.ExchangeFire, wire.ExchangeRoute, false}}", rebuilt},
	{"answered-before-confirm", "a delete is answered before its record is confirmed", "scheduler/actions.go",
		"it.Folded = by.done", "_ = by.done()", property},
	{"doubt-answered", "a command is answered by what the journal says of a burial that is being taken back", "scheduler/commands.go",
		"if h == nil {", "if true || h == nil {", doubted},
	{"returned-not-journaled", "a fire that was refused is not journaled as returned", "scheduler/ledger/ledger.go",
		"return l.Send(p.void)", "p.void.acked = true\n\treturn nil", property},
	{"witness-always-there", "the broker is believed never to restart", "scheduler/core.go",
		"c.reconciler.verdict, c.reconciler.proof = v, p", "c.reconciler.verdict, c.reconciler.proof = stands, p", property},
	{"witness-not-repeated-by-opened", "a new leader does not repeat which witness stands", "scheduler/opening.go",
		"Witness: state.Witness, WitnessFrom: &state.WitnessFrom, Reason", "Reason", property},
	{"witness-not-repeated-by-low-water", "low water does not repeat which witness stands", "scheduler/carry.go",
		"Witness: state.Witness, WitnessFrom: &state.WitnessFrom, Count", "Count", repeated},
	{"witness-not-awaited", "a new leader fires before the record of its witness is confirmed", "scheduler/core.go",
		"c.phase = phaseBeginning", "c.phase = phaseLeading", property},
	{"busy-ignored", "a command acts on an entry while its last record is on its way", "scheduler/copies.go",
		"if b.ledger.Busy(ledger.ID(s.Stream, s.Offset)) != nil {\n\t\treturn true, nil", "if false {\n\t\treturn true, nil", property},
	{"void-obeyed", "records of a leader that was followed are obeyed", "tracker/fold_records.go", "return epoch < known", "return false", property},
	{"foreign-unseen", "a stream that was created again is treated as the old one", "scheduler/opening.go",
		"state.Foreign(stream, o.setup.base) && !o.recreated[stream]", "false", property},
	{"recreated-not-awaited", "a new leader fires before the journal has that a stream is a new one", "scheduler/opening.go",
		"done = done && seen && above && said", "_ = said\n		done = done && seen && above", property},
	{"fired-early", "an entry is fired a moment before it is due", "scheduler/dispatch.go",
		"case at.After(now):", "case at.After(now.Add(300 * time.Millisecond)):", property},
	{"replace-ignored", "an entry that stands for an older one does not replace it", "tracker/fold_entry.go", "if e.Replaces != nil {", "if false && e.Replaces != nil {", property},
	{"replaces-any-job", "an entry replaces any entry at the offset that it names", "tracker/lifecycle.go",
		"offset >= by.Offset || old != nil && old.JID != by.JID {", "offset >= by.Offset || old != nil && false {", another},
	{"lane-looks-ahead", "what a command did to an entry that was looked up before is not seen", "scheduler/dispatch.go",
		"if q.step != d.steps {", "if q.step == 0 {", early},
	{"instant-read-once", "a repetition that is read after others of its due time have fired is not seen", "scheduler/instant.go",
		"if i.unknown || i.step == step {", "if i.unknown || i.step != 0 {", repeats},
	{"barriers-not-awaited", "a new leader fires before it has read to its own barriers", "scheduler/opening.go",
		"done = done && seen && above && said", "done = done && above && said", property},
	{"refusal-forgotten", "a fire in doubt counts as delivered although its queue may have refused it", "scheduler/reconcile.go",
		"case !r.proof.of(queueOf(d)):", "case false:", property},
	{"held-for-an-hour", "a queue that refused a job waits for a clock that was set back", "scheduler/ledger/ledger.go",
		"if back < setBack {", "if true {", setClock},
	{"strays-left-out", "misrouted jobs are not entered again", "scheduler/misrouted.go", "r.left = append(r.left, s)", "_ = s", property},
	{"strays-not-awaited", "a new leader leads before misrouted jobs are entered again", "scheduler/misrouted.go",
		"return len(r.left) == 0 && r.entering == 0, nil", "return true, nil", property},
	{"repair-unjournaled", "the route of fires is repaired before the journal says that it was broken", "scheduler/routing.go",
		"return r.journaled && r.entries.State().MisroutedAt > r.ledger.Epoch()", "return true", property},
	{"proven-too-early", "a probe that was sent is taken for one that arrived", "scheduler/routing.go",
		"if !r.back || p.Number", "if p.Number", property},
	{"needs-too-high", "a carry-over lets the journal forget fires that may be misrouted", "scheduler/carry.go",
		"min(c.run.needs, state.RoutedTo+1)", "c.run.needs", kept},
	{"burials-unseen", "a burial that never reached the dead jobs is taken for one that did", "scheduler/routing.go",
		"|| len(r.burials) > 0 && r.burials[0] <= r.behind {", "{", buried},
	{"forgers-obeyed", "what any client writes into the journal is obeyed", "tracker/fold_journal.go", "if !t.trust.Trusts(r) {", "if false && !t.trust.Trusts(r) {", property},
	{"undone-twice", "an undo of an operation brings back what came back already, and has fired since", "scheduler/operations_undo.go",
		"case j.Type != wire.TypeChanged && u.survey.back.has(j.Offset):", "case false:", undone},
	{"kill-unjournaled", "a requested burial is called confirmed before the record of its kill", "scheduler/ledger/ledger.go",
		"if !p.KeepOpen {", "if true {", undone},
	{"lone-burials-left-out", "a new leader does not look for burials that the journal lacks", "scheduler/reconcile.go",
		"if r.unjournaled, err = r.entries.UnjournaledBurials(); err != nil {", "if _, err = r.entries.UnjournaledBurials(); err != nil {", lone},
	{"lone-burials-by-halves", "a leader journals some burials that the journal lacks, and its successor does not journal the others", "tracker/leadership.go",
		"s.Epoch, s.Identity, s.OpenedAt,", "s.JournaledTo = wire.Through{Epoch: offset}\n\ts.Epoch, s.Identity, s.OpenedAt,", lone},
	{"lone-burials-taken-back", "a burial that the journal refused, and that was taken back, passes for one that it lacks", "tracker/leadership.go",
		"s.JournaledTo.Through = max(s.JournaledTo.Through, seq)", "s.JournaledTo.Through = max(s.JournaledTo.Through, 1)", lone},
	{"lease-left-out", "a leader fires although no ping comes back", "scheduler/lease.go",
		"!l.heard.IsZero() && l.clock().Sub(l.heard) < leaseLasts", "!l.heard.IsZero()", two},
	{"wait-left-out", "a new leader begins while the one before may still fire", "scheduler/election.go",
		"return !f.ExclusiveLock && (!f.DelaysNodeLoss || s.olderNodes.Load())", "return !f.ExclusiveLock && (false || s.olderNodes.Load())", waits},
	{"ended-early", "a leader says that it has ended, and fires on", "scheduler/announce.go",
		"Through: a.ledger.Watermark(), Above:", "Through: a.ledger.Watermark(), Ended: true, Identity: a.setup.identity, Above:", two},
	{"lock-not-proven", "a leader begins although the lock may have passed on before its epoch was in the journal", "scheduler/candidate.go",
		"return c.lease.HeardSince(c.asked)", "return true", check{"./scheduler", "TestOldPingDoesNotProveLock", nil}},
	{"ended-for-ever", "a leader does not wait for another whose predecessor has ended", "tracker/leadership.go",
		"s.Unread, s.Ended = r.Probe, nil, false, false", "s.Unread = r.Probe, nil, false", waits},
	{"answered-before-read-back", "a command is answered when its record is confirmed, which a newer epoch may have made void", "scheduler/actions.go",
		"it.Folded = by.done", "it.Confirmed = func() { _ = by.done() }", two},
	{"late-fires-void", "a fire of a leader that had been followed counts as little as its decisions", "tracker/fold_journal.go",
		"if late && d.Burial() {", "if late {", two},
	{"late-decisions-obeyed", "what a leader decided that had been followed is obeyed", "tracker/fold_records.go",
		"	if late {\n\t\treturn t.foldLate(r)\n", "	if late && false {\n\t\treturn t.foldLate(r)\n", two},
	{"late-burials-repeated", "a burial that is void is taken for one that never arrived", "scheduler/misrouted.go",
		"d.Epoch == a.newest || !d.Burial()", "true", lateOnes},
	{"late-copies-unseen", "a late fire that came back as an entry is fired again", "scheduler/late.go",
		"l.reconciler.proof.alone || l.reconciler.isCopied(&d)", "l.reconciler.proof.alone", lateOnes},
	{"low-water-settles-late", "low water settles a fire that its leader had not read", "tracker/lifecycle.go",
		"d.returned || readTo > 0 && d.late >= readTo", "d.returned", check{"./scheduler", "TestLowWaterLeavesUnreadLateFires", nil}},
	{"last-words-of-another", "what an epoch says was confirmed is counted for the newest", "tracker/fold_records.go",
		"wire.Confirmed{Epoch: r.j.Epoch, Through", "wire.Confirmed{Epoch: t.state.peek().Epoch, Through", two},
	{"carried-in-doubt", "an entry that is in doubt is carried over", "scheduler/carry.go",
		"if pending, err := c.entries.Pending(s); err != nil || !pending {", "if pending, err := c.entries.Pending(s); err != nil || false && !pending {", property},
	{"bounced-origin-ignored", "a fire that found no queue is an entry beside the one that it was fired from", "scheduler/copies.go",
		"if d.Seq == 0 { // that was known", "if d.Seq >= 0 { // that was known", property},
	{"fired-before-bound", "a job is fired before its queue is there", "scheduler/dispatch.go", "	case !ready:\n", "	case false && !ready:\n", fresh},
	{"quiet-ignored", "a leader fires on while nothing is confirmed", "scheduler/dispatch.go",
		"|| !d.ledger.Room() || d.ledger.Quiet() {", "|| !d.ledger.Room() {", check{"./scheduler", "TestFiringStopsWithoutAnswers", nil}},
	{"queue-window-ignored", "one queue may have the whole window open", "scheduler/dispatch.go",
		"q.full = q.unconfirmed >= q.limit", "q.full = q.unconfirmed >= ledger.MaxOpen", check{"./scheduler", "TestEachQueueHasAWindow", nil}},
	{"silent-unbounded", "silent queues may have any number of fires open", "scheduler/ledger/window.go", " && w.aside < MaxAside", "", windowed},
	{"publisher-elsewhere", "a leader fires on another channel than the one that holds its lock", "broker/lock.go",
		"l.pings, err = l.conn.open(ctx, func(*amqp.Channel) error { return nil }, nil); err != nil {\n\t\treturn err\n\t}\n\tl.Publisher = l.conn.publisherOn(l.Inbox.ch, false)",
		"l.pings, err = l.conn.open(ctx, func(ch *amqp.Channel) error { return ch.Confirm(false) }, nil); err != nil {\n\t\treturn err\n\t}\n\tl.Publisher = l.conn.publisherOn(l.pings, false)", passes},
	{"lock-not-exclusive", "the lock of LavinMQ is not consumed exclusively", "broker/lock.go",
		"wire.LeaderInbox, lockPrefetch, exclusive, func", "wire.LeaderInbox, lockPrefetch, false, func", locked},
	{"away-taken-for-missing", "a thing whose node is down is taken for one that was deleted", "broker/errors.go",
		"strings.Contains(text, \"home node\") {\n\t\treturn false", "strings.Contains(text, \"home node\") {\n\t\treturn true", refusals},
	{"letters-needed", "no sidecar leads without the queue of dead letters", "broker/topology.go",
		"wire.EntryStreams...)...)\n", "wire.EntryStreams...)...)\n\t_ = func() bool { needed = append(needed, lettersStep()); return true }()\n", awayTest},
	{"witness-away-is-fatal", "a witness that cannot be reached ends the epoch", "scheduler/witness.go",
		"case errors.Is(errs[i], broker.ErrSilent):", "case false:", unreached},
	{"gated-away-is-broken", "the routing counts as broken while jobs.gated is away", "scheduler/prober.go",
		"broker.IsAway(away) {", "false && broker.IsAway(away) {", gatedAway},
	{"empty-believed", "a stream that looks short after a failover is taken for one that lost its end", "view/identity.go",
		"!f.proven && waited < patience {", "!f.proven && waited < 0 {", short},
	{"unconfirmed-end-is-a-gap", "records that were taken back before they were confirmed are taken for lost ones", "view/identity.go",
		"return finding{verdict: streamTruncated, end: confirmed.offset}, nil", "return finding{verdict: streamGapped, end: confirmed.offset}, nil", takenBack},
	{"tick-not-journaled", "a leader does not journal the ticks of the leader before", "scheduler/changes.go",
		"\t\t\tif err := c.periodics.journalOne(now, a); err != nil {\n\t\t\t\treturn err\n\t\t\t}\n", "", ticks},
	{"tick-not-void", "the job of a tick counts, although another leader had followed", "wire/entry.go",
		"e.Ours = replaces || isNew ||", "e.Ours = replaces || isNew && what == OpEnqueued ||", check{"./tracker", "TestReadOrderChangesNothing", nil}},
	{"tick-skipped-silently", "a tick that is skipped has no outcome", "scheduler/periodics.go",
		"\t\t\toutcomes = append(outcomes, tick)\n", "", ticks},
	{"tick-clock-ahead", "ticks that were skipped because a clock was ahead are not decided again", "scheduler/periodics.go",
		"job.Through > now.Unix()+clockSlack) {", "job.Through > now.Unix()+1<<40) {", ticks},
	{"tick-rounds-overlap", "a round begins before the outcomes of the last one are read back", "scheduler/periodics.go",
		"return p.open > 0 || len(p.making) > 0", "return len(p.making) > 0", ticks},
	{"undo-begins-again", "a leader that continues an undo does not know what the previous leader undid", "scheduler/operations_undo.go",
		"case u.survey.mine.has(d.at):", "case false:", undone},
}
