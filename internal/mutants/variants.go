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
	slots       = drives("TestNothingIsLostOrDoubled", 300)
	ticks       = check{"./scheduler", "TestTicks.*|TestClockThat.*|TestOverlapp.*|TestPaused.*", nil}
	short       = check{"./view", "TestStreamThatLooksShortKeepsView", nil}

	takenBack = check{"./view", "TestLostUnconfirmedRecordsAreRolledBack", nil}
	lateOnes  = check{"./scheduler", "TestUnroutableLateFireArrivedInGated|TestLateBurialsAreNotRepeated", nil}
	rebuilt   = check{"./broker", "TestFireWithoutRouteIsNotJournaled", nil}
)

// variant is one way to break the code: in a declaration, code is replaced by other code.
type variant struct {
	name, what   string
	in, from, to string
	test         check
}

var variants = []variant{
	{"settling-left-out", "a new leader settles nothing", "scheduler.reconciler.begin", "r.open = append(r.open, d)", "", property},
	{"settling-last-epoch-only", "a new leader settles what the last epoch left, and nothing older", "scheduler.reconciler.begin",
		"r.open = append(r.open, d)", "if d.Epoch >= r.entries.State().LastLed { r.open = append(r.open, d) }", property},
	{"watermark-off-by-one", "one more is said to be confirmed than is", "scheduler/ledger.Ledger.Send", "l.watermark", "l.watermark+1", property},
	{"known-confirmed-off-by-one", "a leader that lost its connection claims one more confirm than it had", "scheduler/ledger.Ledger.Known",
		"l.watermark", "l.watermark + 1", property},
	{"above-unsaid", "the journal learns only up to which number everything is confirmed", "scheduler/ledger.numbers.sayAbove",
		`n.header != ""`, "false", property},
	{"above-off-by-one", "a number above the watermark is called confirmed that is not", "scheduler/ledger.numbers.pass",
		"n.above.Add(seq)", "n.above.Add(seq).Add(seq + 1)", property},
	{"cut-off-unasked", "a leader waits for what a replica that is cut off does not have", "scheduler.leadership.watch",
		"!canMove", "canMove", behind},
	{"open-impatient", "a slow broker gets no more time than one that forgot a publish", "scheduler.unanswered.patience",
		"min(first<<min(u.epochs, 4), openWithin)", "first", behind},
	{"claim-overtaken", "a leader waits for its claim, though an earlier leader's arrived behind it", "scheduler.opening.awaitOpened",
		"now.Sub(o.unread) > overtakenAfter", "false", claims},
	{"claim-not-repeated", "a leader waits for its claim, though the journal lost it", "scheduler.opening.open",
		"lost, err = o.lost(now, wire.Journal)", "lost, err = false, nil", opening},
	{"claim-repeated-late", "a leader claims again that another has followed", "scheduler.opening.open", "state.Epoch == o.before", "true", claims},
	{"barrier-not-repeated", "a leader waits for a barrier that its stream lost", "scheduler.opening.catchUp",
		"err == nil && lost", "err == nil && lost && false", opening},
	{"opening-stubborn", "a leader writes to a stream for ever that confirms everything and keeps nothing", "scheduler.opening.lost",
		"o.losses[stream] > mostLosses", "false", opening},
	{"barrier-counts-twice", "a barrier that was written again counts as another leader's", "tracker.State.readBarrier",
		"seen && b.Epoch == before.Epoch", "false", check{"./tracker", "TestBarrierThatWasWrittenTwice", nil}},
	{"overtaken-barrier-voids", "a view that retention overtook takes what newer leaders carried over for void", "tracker.Barrier.voids",
		"!b.Overtaken", "true", check{"./tracker", "TestOvertakenView.*", nil}},
	{"overtaken-unnoticed", "a connected reader that retention has overtaken reads on", "view.gaps.check",
		"first > g.last", "first < g.last", check{"./view", "TestConnectedView.*", nil}},
	{"replica-lacks-unnoticed", "a connected reader takes what its replica lacks for unused offsets", "view.gaps.check",
		"at < next", "at < 0", check{"./view", "TestConnectedView.*", nil}},
	{"lagging-barrier-trusted", "an overtaken view takes the barrier of a leader that had read nothing since for the newest", "tracker.State.readBarrier",
		"b.Read < first-1", "false", check{"./tracker", "TestOvertakenView.*", nil}},
	{"overtaken-burial-uncounted", "burials of a leader whose barrier retention took are not compared", "tracker.State.buried",
		"b.Overtaken", "false", check{"./tracker", "TestOvertakenView.*", nil}},
	{"announcement-hidden", "a replacement that is written cannot be found until the table shows the batch", "tracker.announcements.set",
		"t.shown.lower(id.stream, id.offset)", "", check{"./tracker", "TestAnnouncements.*", nil}},
	{"announcement-shown-early", "a replacement cannot be found while the batch that removes it is not written", "tracker.announcements.save",
		"clear(t.left)", "t.show(); clear(t.left)", check{"./tracker", "TestAnnouncements.*", nil}},
	{"reused-offset-unannounced", "what the journal says of a replacement that the stream lost counts for the one at its offset", "tracker.announcements.add",
		"tag == a.JIDTag", `tag != ""`, check{"./tracker", "TestReusedOffset.*", nil}},
	{"late-record-removes", "a record of a replacement that the stream lost removes the announcement at its offset", "tracker.announcements.journaled",
		"a.JIDTag != tag", `a.JIDTag == ""`, check{"./tracker", "TestReusedOffset.*", nil}},
	{"stale-end", "a record counts as lost by what the broker said before it was confirmed", "view.progress.hasRead",
		"p.end.askedAt.After(since)", "true", check{"./view", "TestHasReadToEnd.*", nil}},
	{"claim-awaited", "an epoch ends because its claim, which the view has read, was never confirmed", "scheduler/ledger.Ledger.ForgetPlain",
		"p.Plain", "!p.Plain", claims},
	{"lost-stays", "an epoch continues though the journal lost what the broker had confirmed", "scheduler/ledger.Ledger.releaseOne",
		"l.cfg.View.Lacks(l.epoch, newest.seq)", "newest.seq < 0", lostRecords},
	{"lost-void", "a fire that was refused counts as confirmed before the view has the record that takes it back", "scheduler/ledger.Ledger.TakeBack",
		"p.void.Confirmed = func() { p.acked = true }; return l.Send(p.void)",
		"p.void.Confirmed = func() { p.acked = true; l.pass(p.seq) }; return l.Send(p.void)", lostRecords},
	{"lost-burial", "a kill is journaled before the view has its burial", "scheduler.actions.kill",
		"a.ledger.AfterFold(burial.Seq(), note)", "note()", lostRecords},
	{"lost-newest", "a leader that does nothing more does not learn that the journal lost its newest record", "scheduler/ledger.Ledger.AskBehind",
		"l.Drained()", "!l.Drained()", lostRecords},
	{"copy-lost", "a copy that jobs.gated has lost is not published again", "scheduler.unrouted.look", "u.publishCopy(f)", "nil", unrouted},
	{"copy-lost-in-model", "the same, found by the model", "scheduler.unrouted.look", "u.publishCopy(f)", "nil", property},
	{"copy-refused", "a fire that was refused gets a copy too", "scheduler.dispatcher.returned",
		"d.unrouted.needsNoCopy(dispatch{wire.Through{Epoch: d.ledger.Epoch(), Through: it.Seq()}, it.tag})",
		"_ = (dispatch{wire.Through{Epoch: d.ledger.Epoch(), Through: it.Seq()}, it.tag})", unrouted},
	{"copy-unread", "a copy counts as lost that the view has not read yet", "scheduler.unrouted.look",
		"case u.clock-f.since < copyPatience, f.behind > shown:", "case u.clock-f.since < copyPatience, f.behind > u.sent:", unrouted},
	{"copy-left", "the next epoch of a claim does not know which copies are missing", "scheduler.core.leftovers",
		"c.unrouted.waiting", "nil", unrouted},
	{"copy-first", "a copy that came before its fire came back counts as missing", "scheduler.unrouted.cameBack",
		"!needsNone", "!needsNone || true", unrouted},
	{"copy-between", "a copy that the view reads before the epoch leads counts as missing", "scheduler.copies.open",
		"_, err := c.takeNew()", "c.entries.TakeCopies()", unrouted},
	{"hole-forgotten", "the next epoch of a claim does not know what has no answer", "scheduler/ledger.newAnswers",
		"for tag := range gone {", "for tag := range map[uint64]bool{} {", unrouted},
	{"cut-off-stays", "a reader stays at a replica that is cut off", "view.tail.askEnd",
		"t.stop(streams.ErrMoved)", "_ = streams.ErrMoved", elsewhere},
	{"cut-off-hasty", "a reader moves as soon as there is more", "view.streamEnd.stalled", "e.behindAt != at", "e.behindAt == unmoved", elsewhere},
	{"cut-off-again", "a reader moves again and again for an end that no node has", "view.streamEnd.stalled",
		"case e.movedFor != e.last || now.Sub(e.movedAt) >= moveAgain:", "default:", elsewhere},
	{"unsaid-waits", "a question waits for a node that is cut off", "streams.nativeTransport.kept", "keptEach", "10*keptEach", unsaid},
	{"cut-off-new", "a reader that has just begun moves", "view.streamEnd.stalled", "now.Sub(e.connectedAt) < settlesIn", "false", elsewhere},
	{"cut-off-start", "a reader moves that reads from behind the end", "view.streamEnd.stalled", "max(position, e.start-1)", "position", elsewhere},
	{"unanswered-busy", "answers that were not looked at count as missing", "scheduler.watchdog.Check", "!w.awaits", "false", behind},
	{"silent-in-window", "fires of a silent queue take the place of the others'", "scheduler/ledger.window.room",
		"len(w.open)-w.aside < MaxOpen", "len(w.open) < MaxOpen", windowed},
	{"given-up-unread", "a fire is given up on that the journal may not have", "scheduler/ledger.Ledger.GiveUp", "p.seq <= folded", "true", silent},
	{"given-up-twice", "a fire that was given up on is returned once more when its answer comes", "scheduler/ledger.Ledger.abandon",
		"l.gone[tag] = true; return l.takeOut(tag)", "return l.open[tag]", silent},
	{"passed-over-unjournaled", "a fire that the journal lacks is called delivered", "scheduler.silence.giveUpOn",
		"arrived && journaled", "arrived && (journaled || true)", lostOnes},
	{"passed-over-counted", "a fire that the journal lacks is taken off what its operation has done", "scheduler.dispatcher.returned",
		"if journaled {", "if true {", lostOnes},
	{"passed-over-in-the-window", "what is given up on is counted among what is set aside", "scheduler/ledger.window.takeOut",
		"if p.aside {", "if p.aside && false {", lostOnes},
	{"passed-over-holds-a-trial", "a queue on trial waits for what is set aside", "scheduler.dispatcher.fireNext", "q.Aside", "0", lostOnes},
	{"passed-over-leaves-full", "a queue whose window was full of lost fires stays out of the ring", "scheduler.dispatcher.returned",
		"it.queue.full = false; d.queues.wakeAt(it.queue, time.Time{})", "", lostOnes},
	{"passed-over-is-held", "a queue is held for a fire that it has passed over", "scheduler.dispatcher.returned",
		"why == ledger.NoAnswer && it.PassedOver()", "false", lostOnes},
	{"silent-untried", "a queue whose newest fire was lost gets no other", "scheduler.silence.step", "silent && !q.tried", "false", lostOnes},
	{"silent-stops-operations", "operations wait for what is set aside", "scheduler/ledger.window.Idle",
		"len(w.open)-w.aside < most", "len(w.open) < most", lostOnes},
	{"confirmed-lost", "a lost record of what is confirmed ends the epoch", "scheduler/ledger.Ledger.Watch",
		"if tag < l.journal { l.abandon(tag); p.Lost(); continue }",
		"if tag < l.journal && p.Confirmed != nil { l.abandon(tag); p.Lost(); continue }", lostOnes},
	{"probe-lost", "a lost probe stops all that is fired", "scheduler/ledger.Ledger.Watch",
		"if tag < l.journal { l.abandon(tag); p.Lost(); continue }",
		"if tag < l.journal && p.Confirmed == nil { l.abandon(tag); p.Lost(); continue }", lostOnes},
	{"probes-lost-for-ever", "a broker that answers no probe keeps its leader", "scheduler.routing.step",
		"r.lost > maxLostProbes", "false", lostOnes},
	{"hole-for-ever", "memory grows behind a publish without an answer", "scheduler/ledger.answers.behind",
		"a.hole == 0 || tag < a.hole", "false", lostOnes},
	{"last-fire-undecided", "a fire that nothing follows is not decided", "scheduler/ledger.Ledger.SetAside", "tag > l.numbered", "false", lostOnes},
	{"last-record-stuck", "a record without an answer that nothing follows stops all queues", "scheduler/ledger.Ledger.Watch",
		"l.waits = max(l.waits, tag)", "", lostOnes},
	{"refire-in-doubt", "a repeated fire that the journal lacks leaves its entry in doubt", "scheduler.dispatcher.returned",
		"err == nil && it.doubt != nil && !journaled", "false", lostOnes},
	{"hole-stays", "an answer that comes late leaves the hole", "scheduler/ledger.Ledger.answer", "delete(l.gone, tag)", "_ = l.gone", lostOnes},
	{"proof-of-a-cluster", "a witness on one node is believed for all nodes", "scheduler.proof.of", "p.alone", "true", provable},
	{"links-not-compared", "a link that broke and came back is not noticed", "broker.Fingerprint.String",
		"[]map[string]string{f.Nodes, f.Links}", "[]map[string]string{f.Nodes}", links},
	{"old-links-believed", "links are compared as they were before the old leader ended", "scheduler.freshSince",
		"n.Running && n.Uptime <= first[n.Name]", "false", links},
	{"witness-missed-at-once", "a witness that is not seen for a moment is taken for a lost one", "scheduler.witness.lookAtNodes",
		"return undecided, oneGone, nil", "return gone, oneGone, nil", unseen},
	{"witness-not-seen", "a broker whose witness does not answer is believed not to have restarted", "scheduler.looks.take",
		"l.last = saw", "l.last, saw = allSeen, allSeen", unseen},
	{"sight-forgotten", "a node that is silent now and then prevents a verdict", "scheduler.looks.fresh",
		"now.Sub(l.taken) > linksAge", "l.last != allSeen", looks},
	{"links-long-ago", "links speak for what was fired after they were first reported", "scheduler.looks.take",
		"now.Sub(l.taken) <= linksAge", "true", looks},
	{"first-probe-unfollowed", "a leader of a short epoch leaves the journal of all before it to read", "scheduler.routing.intact",
		"r.since, r.unseen = probeAlways, followEvery", "r.since = probeAlways", check{"./scheduler", "TestShortEpochsFollowTheirProbe", nil}},
	{"silent-api-decides", "a management API that does not answer once is taken for a restart", "scheduler.witness.lookAtNodes",
		"case err != nil && w.mgmt != nil: return undecided, noAnswer, nil",
		"case err != nil && w.mgmt != nil: return gone, noAnswer, nil", check{"./scheduler", "TestHangingManagementAPI", nil}},
	{"unread-proof-decides", "queues that could not be listed once are taken to prove nothing", "scheduler.reconciler.unprovable",
		"r.verdict == undecided && r.proof.unread", "false", property},
	{"settled-undecided", "a fire is called delivered before it is known whether a link broke", "scheduler.reconciler.reconcileOpen",
		"r.verdict == undecided && r.provable(&d) && !r.isCopied(&d)", "false", property},
	{"witness-covers-earlier", "a new witness is believed about what was fired before it", "tracker.State.witnessed",
		"s.Witness, s.WitnessFrom = standing, wire.Through{Epoch: r.Epoch, Through: seq}", "s.Witness = standing; _ = seq", property},
	{"low-water-settles-waiting", "low water passes while fires of earlier epochs are in doubt", "scheduler.carrier.step",
		"d.Epoch < c.ledger.Epoch()", "false", property},
	{"proof-of-quorum-queues", "a quorum queue is believed to have what was fired to it", "scheduler.proves",
		`q.Type == "classic"`, "true", provable},
	{"low-water-one-too-high", "low water is above an entry that is pending", "scheduler.carrier.endCarry", "cut + 1", "cut + 2", property},
	{"low-water-too-soon", "low water is moved before all that stands below it is carried over", "scheduler.carrier.step",
		"!done || len(c.run.sent) > 0", "false", property},
	{"low-water-does-not-linger", "low water is moved before the broker has brought to its disk what was carried over", "scheduler.carrier.step",
		"c.run.linger > 0", "false", lingers},
	{"buried-again", "a leader enters a dead job again that an earlier one had entered", "scheduler.reentry.repeatBurial",
		"d.At.Equal(e.At)", "false", oneDead},
	{"journal-bound-first", "jobs.fire is bound to the journal before it is bound to the queues", "broker.ofFire",
		"{wire.ExchangeFire, wire.ExchangeRoute, false}, {wire.ExchangeFire, wire.Journal, true}",
		"{wire.ExchangeFire, wire.Journal, true}, {wire.ExchangeFire, wire.ExchangeRoute, false}", rebuilt},
	{"answered-before-confirm", "a delete is answered before its record is confirmed", "scheduler.actions.note",
		"it.Folded = by.done", "_ = by.done()", property},
	{"doubt-answered", "a command is answered by what the journal says of a burial that is being taken back", "scheduler.commands.whenKnown",
		"h == nil", "true || h == nil", doubted},
	{"returned-not-journaled", "a fire that was refused is not journaled as returned", "scheduler/ledger.Ledger.TakeBack",
		"return l.Send(p.void)", "p.void.acked = true; return nil", property},
	{"witness-always-there", "the broker is believed never to restart", "scheduler.core.witnessed",
		"c.reconciler.verdict, c.reconciler.proof = v, p", "c.reconciler.verdict, c.reconciler.proof = stands, p", property},
	{"witness-not-repeated-by-opened", "a new leader does not repeat which witness stands", "scheduler.opening.open",
		"Witness: state.Witness, WitnessFrom: &state.WitnessFrom", `Witness: "", WitnessFrom: nil`, property},
	{"witness-not-repeated-by-low-water", "low water does not repeat which witness stands", "scheduler.carrier.endCarry",
		"Witness: state.Witness, WitnessFrom: &state.WitnessFrom", `Witness: "", WitnessFrom: nil`, repeated},
	{"witness-not-awaited", "a new leader fires before the record of its witness is confirmed", "scheduler.core.begin",
		"c.phase = phaseBeginning", "c.phase = phaseLeading", property},
	{"busy-ignored", "a command acts on an entry while its last record is on its way", "scheduler.base.isBusy",
		"b.ledger.Busy(ledger.ID(s.Stream, s.Offset)) != nil", "false", property},
	{"void-obeyed", "records of a leader that was followed are obeyed", "tracker.journalFold.isLate", "epoch < known", "false", property},
	{"foreign-unseen", "a stream that was created again is treated as the old one", "scheduler.opening.catchUp",
		"state.Foreign(stream, o.setup.base) && !o.recreated[stream]", "false", property},
	{"recreated-not-awaited", "a new leader fires before the journal has that a stream is a new one", "scheduler.opening.catchUp",
		"done = done && seen && above && said", "_ = said; done = done && seen && above", property},
	{"fired-early", "an entry is fired a moment before it is due", "scheduler.dispatcher.prepared",
		"case at.After(now):", "case at.After(now.Add(300 * time.Millisecond)):", property},
	{"replace-ignored", "an entry that stands for an older one does not replace it", "tracker.entryFold.enter",
		"e.Replaces != nil", "false && e.Replaces != nil", property},
	{"replaces-any-job", "an entry replaces any entry at the offset that it names", "tracker.lifecycle.replace",
		"old.JID != by.JID", "false", another},
	{"lane-looks-ahead", "what a command did to an entry that was looked up before is not seen", "scheduler.dispatcher.head",
		"q.step != d.steps", "q.step == 0", early},
	{"instant-read-once", "a repetition that is read after others of its due time have fired is not seen", "scheduler.instant.read",
		"i.step == step", "i.step != 0", repeats},
	{"barriers-not-awaited", "a new leader fires before it has read to its own barriers", "scheduler.opening.catchUp",
		"done && seen", "done", property},
	{"refusal-forgotten", "a fire in doubt counts as delivered although its queue may have refused it", "scheduler.reconciler.unprovable",
		"!r.proof.of(queueOf(d))", "false", property},
	{"held-for-an-hour", "a queue that refused a job waits for a clock that was set back", "scheduler/ledger.Ledger.Tick",
		"back < setBack", "true", setClock},
	{"strays-left-out", "misrouted jobs are not entered again", "scheduler.reentry.find", "r.left = append(r.left, s)", "_ = s", property},
	{"strays-not-awaited", "a new leader leads before misrouted jobs are entered again", "scheduler.reentry.step",
		"len(r.left) == 0 && r.entering == 0", "true", property},
	{"repair-unjournaled", "the route of fires is repaired before the journal says that it was broken", "scheduler.routing.mayRepair",
		"r.journaled && r.entries.State().MisroutedAt > r.ledger.Epoch()", "true", property},
	{"proven-too-early", "a probe that was sent is taken for one that arrived", "scheduler.routing.probeArrived", "!r.back", "false", property},
	{"needs-too-high", "a carry-over lets the journal forget fires that may be misrouted", "scheduler.carrier.endCarry",
		"min(c.run.needs, state.RoutedTo+1)", "c.run.needs", kept},
	{"burials-unseen", "a burial that never reached the dead jobs is taken for one that did", "scheduler.routing.probeArrived",
		"len(r.burials) > 0 && r.burials[0] <= r.behind", "false", buried},
	{"forgers-obeyed", "what any client writes into the journal is obeyed", "tracker.journalFold.fold",
		"!t.trust.Trusts(r)", "false && !t.trust.Trusts(r)", property},
	{"undone-twice", "an undo of an operation brings back what came back already, and has fired since", "scheduler.operations.undoEffect",
		"j.Type != wire.TypeChanged && u.survey.back.has(j.Offset)", "false", undone},
	{"kill-unjournaled", "a requested burial is called confirmed before the record of its kill", "scheduler/ledger.Ledger.Accept",
		"!p.KeepOpen", "true", undone},
	{"lone-burials-left-out", "a new leader does not look for burials that the journal lacks", "scheduler.reconciler.begin",
		"r.unjournaled", "_", lone},
	{"lone-burials-by-halves", "a leader journals some burials that the journal lacks, and its successor does not journal the others", "tracker.State.opened",
		"s.Epoch, s.Identity, s.OpenedAt, s.FoldedSeq, s.Confirmed, s.Probe = offset, r.Identity, r.At, 0, 0, 0",
		"s.JournaledTo = wire.Through{Epoch: offset}; s.Epoch, s.Identity, s.OpenedAt, s.FoldedSeq, s.Confirmed, s.Probe = offset, r.Identity, r.At, 0, 0, 0", lone},
	{"lone-burials-taken-back", "a burial that the journal refused, and that was taken back, passes for one that it lacks", "tracker.State.numbered",
		"max(s.JournaledTo.Through, seq)", "max(s.JournaledTo.Through, 1)", lone},
	{"lease-left-out", "a leader fires although no ping comes back", "scheduler.lease.Fresh", "l.clock().Sub(l.heard) < leaseLasts", "true", two},
	{"wait-left-out", "a new leader begins while the one before may still fire", "scheduler.Scheduler.waitsForPredecessor",
		"!f.DelaysNodeLoss", "false", waits},
	{"ended-early", "a leader says that it has ended, and fires on", "scheduler.announcer.journalConfirmed",
		"Above: slices.Clone(a.ledger.Above())", "Ended: true, Identity: a.setup.identity, Above: slices.Clone(a.ledger.Above())", two},
	{"lock-not-proven", "a leader begins although the lock may have passed on before its epoch was in the journal", "scheduler.candidate.stillHolds",
		"c.lease.HeardSince(c.asked)", "true", check{"./scheduler", "TestOldPingDoesNotProveLock", nil}},
	{"ended-for-ever", "a leader does not wait for another whose predecessor has ended", "tracker.State.opened",
		"s.ProbeQueue, s.Skipped, s.Unread, s.Ended = r.Probe, nil, false, false", "s.ProbeQueue, s.Skipped, s.Unread = r.Probe, nil, false", waits},
	{"answered-before-read-back", "a command is answered when its record is confirmed, which a newer epoch may have made void", "scheduler.actions.note",
		"it.Folded = by.done", "it.Confirmed = func() { _ = by.done() }", two},
	{"late-fires-void", "a fire of a leader that had been followed counts as little as its decisions", "tracker.journalFold.foldDispatch",
		"d.Burial()", "true", two},
	{"late-decisions-obeyed", "what a leader decided that had been followed is obeyed", "tracker.journalFold.foldRecord",
		"if late { return t.foldLate(r) }", "if late && false { return t.foldLate(r) }", two},
	{"late-burials-repeated", "a burial that is void is taken for one that never arrived", "scheduler.misroutedScan.read",
		"d.Epoch == a.newest || !d.Burial()", "true", lateOnes},
	{"late-copies-unseen", "a late fire that came back as an entry is fired again", "scheduler.lateFires.step",
		"l.reconciler.isCopied(&d)", "false", lateOnes},
	{"low-water-settles-late", "low water settles a fire that its leader had not read", "tracker.lifecycle.settleEarlier",
		"readTo > 0 && d.late >= readTo", "false", check{"./scheduler", "TestLowWaterLeavesUnreadLateFires", nil}},
	{"last-words-of-another", "what an epoch says was confirmed is counted for the newest", "tracker.journalFold.foldConfirmed",
		"t.confirm(r.tx, wire.Confirmed{Epoch: r.j.Epoch, Through: r.j.Through, Above: r.j.Above})",
		"t.confirm(r.tx, wire.Confirmed{Epoch: t.state.peek().Epoch, Through: r.j.Through, Above: r.j.Above})", two},
	{"carried-in-doubt", "an entry that is in doubt is carried over", "scheduler.carrier.carryOne", "!pending", "false && !pending", property},
	{"bounced-origin-ignored", "a fire that found no queue is an entry beside the one that it was fired from", "scheduler.base.original",
		"d.Seq == 0", "d.Seq >= 0", property},
	{"fired-before-bound", "a job is fired before its queue is there", "scheduler.dispatcher.prepared", "!ready", "false && !ready", fresh},
	{"quiet-ignored", "a leader fires on while nothing is confirmed", "scheduler.dispatcher.step",
		"d.ledger.Quiet()", "false", check{"./scheduler", "TestFiringStopsWithoutAnswers", nil}},
	{"queue-window-ignored", "one queue may have the whole window open", "scheduler.dispatcher.fireNext",
		"q.unconfirmed >= q.limit", "q.unconfirmed >= ledger.MaxOpen", check{"./scheduler", "TestEachQueueHasAWindow", nil}},
	{"silent-unbounded", "silent queues may have any number of fires open", "scheduler/ledger.window.room", "w.aside < MaxAside", "true", windowed},
	{"publisher-elsewhere", "a leader fires on another channel than the one that holds its lock", "broker.Lock.claim",
		"if l.pings, err = l.conn.open(ctx, func(*amqp.Channel) error { return nil }, nil); err != nil { return err }; l.Publisher = l.conn.publisherOn(l.Inbox.ch, false)",
		"if l.pings, err = l.conn.open(ctx, func(ch *amqp.Channel) error { return ch.Confirm(false) }, nil); err != nil { return err }; l.Publisher = l.conn.publisherOn(l.pings, false)", passes},
	{"lock-not-exclusive", "the lock of LavinMQ is not consumed exclusively", "broker.Lock.claimExclusive",
		"l.consumeLock(ctx, true, declare, undo)", "l.consumeLock(ctx, false, declare, undo)", locked},
	{"away-taken-for-missing", "a thing whose node is down is taken for one that was deleted", "broker.IsMissing",
		`if strings.Contains(text, "inaccessible") || strings.Contains(text, "home node") { return false }`,
		`if strings.Contains(text, "inaccessible") || strings.Contains(text, "home node") { return true }`, refusals},
	{"letters-needed", "no sidecar leads without the queue of dead letters", "broker.needed",
		"streamSteps(append([]string{wire.Journal}, wire.EntryStreams...)...)",
		"append(streamSteps(append([]string{wire.Journal}, wire.EntryStreams...)...), lettersStep())", awayTest},
	{"witness-away-is-fatal", "a witness that cannot be reached ends the epoch", "scheduler.witness.identify",
		"errors.Is(errs[i], broker.ErrSilent)", "false", unreached},
	{"gated-away-is-broken", "the routing counts as broken while jobs.gated is away", "scheduler.prober.check",
		"broker.IsAway(away)", "false && broker.IsAway(away)", gatedAway},
	{"empty-believed", "a stream that looks short after a failover is taken for one that lost its end", "view.tail.identify",
		"waited < patience", "waited < 0", short},
	{"unconfirmed-end-is-a-gap", "records that were taken back before they were confirmed are taken for lost ones", "view.comparer.identifyByMarks",
		"finding{verdict: streamTruncated, end: confirmed.offset}", "finding{verdict: streamGapped, end: confirmed.offset}", takenBack},
	{"slot-ends-ignored", "a slot is not freed when its job has ended", "tracker.slots.end",
		"return t.remove(tx, id, h)", "return nil", slots},
	{"slot-end-before-fire", "an end that is read before its fire is forgotten", "tracker.slots.add",
		"err != nil || known.Ended", "err != nil || known.Any && false", check{"./tracker", "TestReadOrderChangesNothing", nil}},
	{"slot-forgotten-at-low-water", "slots are not written again at low water", "scheduler.limits.carryOver",
		"slices.Chunk(held, maxOutcomes)", "slices.Chunk(held[:0], maxOutcomes)", slots},
	{"slot-unread-fires", "the fires of this epoch are not counted before they are read back", "scheduler/gate.Gate.Take",
		"if held { g.Hold(entry, group) }", "", check{"./scheduler/gate", "TestLimitsHold", nil}},
	{"slot-freed-twice", "a slot that is freed twice counts twice", "scheduler/gate.Gate.Free",
		"delete(g.slots, entry)", "", check{"./scheduler/gate", "TestConcurrencyPerKey|TestLimitsHold", nil}},
	{"slot-admits-none", "a slot that is freed lets no other job begin", "scheduler/gate.Gate.Free",
		"g.admit(now, c)", "", check{"./scheduler/gate", "TestLimitsHold", nil}},
	{"tick-not-journaled", "a leader does not journal the ticks of the leader before", "scheduler.changes.journalOthers",
		"if err := c.periodics.journalOne(now, a); err != nil { return err }", "", ticks},
	{"tick-not-void", "the job of a tick counts, although another leader had followed", "wire.EntryRecord.readHeaders",
		"isNew := enqueues(what) && !replaces; e.Ours = replaces || isNew || dispatched && d.Burial()",
		"isNew := enqueues(what) && !replaces; e.Ours = replaces || isNew && what == OpEnqueued || dispatched && d.Burial()", check{"./tracker", "TestReadOrderChangesNothing", nil}},
	{"tick-skipped-silently", "a tick that is skipped has no outcome", "scheduler.periodics.decideAll",
		`if tick.Outcome != "" { outcomes = append(outcomes, tick) }`, `if tick.Outcome != "" { }`, ticks},
	{"tick-clock-ahead", "ticks that were skipped because a clock was ahead are not decided again", "scheduler.periodics.decideAll",
		"now.Unix()+clockSlack", "now.Unix()+1<<40", ticks},
	{"tick-rounds-overlap", "a round begins before the outcomes of the last one are read back", "scheduler.periodics.busy",
		"p.open > 0", "false", ticks},
	{"unique-undecided-fires", "a unique job fires before it is decided that it has its key", "tracker.keyDue",
		"if s.Undecided {", "if s.Undecided && s.Offset%3 != 0 {", slots},
	{"unique-carried-undecided", "carry-over goes past an undecided entry, and so behind younger ones", "scheduler.carrier.carryOne",
		`s.Undecided && s.Parked == ""`, `s.Undecided && s.Parked != ""`, slots},
	{"unique-dead-keeps-key", "a dead job keeps its key", "tracker.Stored.holdsKey",
		"s.Stream == wire.Gated", "(s.Stream == wire.Gated || s.Stream == wire.DeadJobs)", slots},
	{"unique-retry-unread", "a key is free before the retry of its job was read", "scheduler.retriesProbes.passed",
		"read < max(p.needs[key], p.least, 1)", "read > max(p.needs[key], p.least, 1)", slots},
	{"unique-confirmed-late", "a unique job is not looked at again when the record of its decision is confirmed late", "scheduler.uniques.lookAt",
		"u.look(s)", "", check{"./scheduler", "TestUniqueJobFiresWhenDecisionIsConfirmedLate", nil}},
	{"governed-bound-first", "the new destination of a queue is bound before the old one is unbound", "broker.Queues.Direct",
		"if other == destination { continue }; err := q.request(ctx, other, func(ch *amqp.Channel) error { return ch.QueueUnbind(other, name, wire.ExchangeDirect, nil) })",
		"if other == destination { continue }; _ = q.bindTo(ctx, wire.ExchangeDirect, destination, name); err := q.request(ctx, other, func(ch *amqp.Channel) error { return ch.QueueUnbind(other, name, wire.ExchangeDirect, nil) })",
		check{"./broker", "TestSwitchOfGovernedQueue.*", nil}},
	{"governed-entries-stay", "the entries of a queue stay where they are when it is governed", "tracker.governing.set",
		"return entries.regate(tx, name)", "return nil", check{"./tracker", "TestReadOrderChangesNothing", nil}},
	{"governed-any-turn", "a state of a queue counts that was found before it was governed again", "tracker.governing.restate",
		"old.Turn != r.Turn", "false", check{"./tracker", "TestGovernedQueueReadsKeysOfJobs", nil}},
	{"governed-while-draining", "jobs are delivered while those from before are in the queue", "scheduler.governed.limitQueues",
		"def.Paused || closed", "def.Paused || closed && false", check{"./scheduler", "TestQueueIsGoverned", nil}},
	{"turns-without-weights", "all keys have the same weight", "scheduler/gate.turns.step", "weight > 1", "weight > 1 && false",
		check{"./scheduler/gate", "TestHeavyKeyHasMoreTurns|TestTurnsFollowWeights", nil}},
	{"turns-saved", "a key that had nothing to do has saved turns", "scheduler/gate.turns.assign", "max(t.next[s], t.clock)", "t.next[s]",
		check{"./scheduler/gate", "TestIdleKeySavesNoTurns", nil}},
	{"undo-begins-again", "a leader that continues an undo does not know what the previous leader undid", "scheduler.operations.undoEffect",
		"u.survey.mine.has(d.at)", "false", undone},
}
