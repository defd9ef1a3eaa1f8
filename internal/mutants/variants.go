package main

import (
	"fmt"
	"strings"
)

// check is the test that must notice.
type check struct {
	pkg, run string
	args     []string
}

// drives is a property test that tries so often, and does not look for the shortest way to what it found.
func drives(test string, times int) check {
	return check{"./scheduler", test, []string{fmt.Sprintf("-rapid.checks=%d", times), "-rapid.shrinktime=1ms", "-rapid.nofailfile"}}
}

func (c check) String() string { return c.pkg + " " + c.run + " " + strings.Join(c.args, " ") }

var (
	// property drives leaders and views through whatever may happen; more often than `make test` does.
	property = drives("TestNothingIsLostOrDoubled", 2000)
	another  = check{"./tracker", "TestAReplacementOfAnotherJobReplacesNothing", nil}
	kept     = check{"./scheduler", "TestLowWaterKeepsWhatMayHaveGoneAstray", nil}
	buried   = check{"./scheduler", "TestBurialsThatWentAstray", nil}
	oneDead  = check{"./scheduler", "TestBurialsAreRepeatedOnce", nil}
	undone   = drives("TestOperationsAreUndoneOnce", 1000)
	lone     = check{"./scheduler", "TestKillsThatTheJournalLacks|TestKillsThatTheJournalRefused|TestOperationsWhoseKillsTheJournalLacks", nil}
	setClock = check{"./scheduler", "TestClockSetBackHoldsNothingUp", nil}
	doubted  = check{"./scheduler", "TestCommandsKnowWhatWasTakenBack", nil}
	repeated = check{"./scheduler", "TestLowWaterRepeatsTheWitness", nil}
	early    = check{"./scheduler", "TestWhatIsTriggeredIsNotFiredWhenDue", nil}
	lingers  = check{"./scheduler", "TestLowWaterLingers", nil}
	rebuilt  = check{"./broker", "TestNothingIsJournaledThatIsNotRouted", nil}
)

// variant is one way to break the code.
type variant struct {
	name, what     string
	file, from, to string
	test           check
}

var variants = []variant{
	{"settling-left-out", "a new leader settles nothing", "scheduler/settle.go",
		"		c.settling.open = append(c.settling.open, d)\n", "", property},
	{"settling-last-epoch-only", "a new leader settles what the last epoch left, and nothing older", "scheduler/settle.go",
		"		c.settling.open = append(c.settling.open, d)\n",
		"		if d.Epoch >= c.entries.State().LastLed {\n\t\t\tc.settling.open = append(c.settling.open, d)\n\t\t}\n", property},
	{"watermark-off-by-one", "one more is said to be confirmed than is", "scheduler/core.go",
		"m := it.build(c.seq+1, c.watermark)", "m := it.build(c.seq+1, c.watermark+1)", property},
	{"known-confirmed-off-by-one", "a leader that lost its connection claims one more confirm than it had", "scheduler/window.go",
		"Through: c.watermark}", "Through: c.watermark + 1}", property},
	{"low-water-one-too-high", "low water is above an entry that is pending", "scheduler/carry.go", "low[stream] = cut + 1", "low[stream] = cut + 2", property},
	{"low-water-too-soon", "low water is moved before all that stands below it is carried over", "scheduler/carry.go",
		"if !done || len(c.carry.sent) > 0 {", "if false {", property},
	{"low-water-does-not-linger", "low water is moved before the broker has brought to its disk what was carried over", "scheduler/carry.go",
		"if c.carry.linger > 0 {", "if false {", lingers},
	{"buried-again", "a leader enters a dead job again that an earlier one had entered", "scheduler/astray.go", " || d.At.Equal(e.At)", "", oneDead},
	{"journal-bound-first", "jobs.fire is bound to the journal before it is bound to the queues", "broker/way.go",
		"{{wire.ExchangeFire, wire.ExchangeRoute, false}, {wire.ExchangeFire, wire.Journal, true}}",
		"{{wire.ExchangeFire, wire.Journal, true}, {wire.ExchangeFire, wire.ExchangeRoute, false}}", rebuilt},
	{"answered-before-confirm", "a delete is answered before its record is confirmed", "scheduler/command.go",
		"return c.record(now, r, about, func(bool) { answer(wire.Reply{Status: wire.StatusDone}) })",
		"answer(wire.Reply{Status: wire.StatusDone})\n	return c.record(now, r, about, nil)", property},
	{"doubt-answered", "a command is answered by what the journal says of a burial that is being taken back", "scheduler/command.go",
		"if h == nil || c.busy[spot{cmd.Stream, h.Offset}] == nil {", "if true || h == nil {", doubted},
	{"returned-not-journaled", "a fire that was refused is not journaled as returned", "scheduler/core.go",
		"err := c.record(now, r, spot{}, func(bool) {", "err := c.append(wire.Retries, wire.JournalRecord{Type: wire.TypeBarrier, Epoch: c.epoch})\n	_ = r\n	func(func(bool)) {}(func(bool) {", property},
	{"witness-always-there", "the broker is believed never to restart", "scheduler/settle.go", "c.settling.intact = intact", "c.settling.intact = intact || true", property},
	{"witness-not-repeated-by-opened", "a new leader does not repeat which witness stands", "scheduler/open.go",
		"Queue: state.Witness,", "Queue: \"\",", property},
	{"witness-not-repeated-by-low-water", "low water does not repeat which witness stands", "scheduler/carry.go",
		"Queue: state.Witness,", "Queue: \"\",", repeated},
	{"witness-not-awaited", "a new leader fires before the record of its witness is confirmed", "scheduler/settle.go",
		"c.phase = phaseBeginning", "c.phase = phaseLeading", property},
	{"busy-ignored", "an entry is acted upon while its last record is on its way", "scheduler/fire.go",
		"if c.busy[at] == nil && !c.entries.IsHeld", "if !c.entries.IsHeld", property},
	{"void-obeyed", "records of a leader that was followed are obeyed", "tracker/fold_journal.go", "return epoch < known", "return false", property},
	{"foreign-unseen", "a stream that was made anew is taken for the old one", "scheduler/open.go",
		"state.Foreign(stream, c.setup.base) && !c.opening.recreated[stream]", "false", property},
	{"recreated-not-awaited", "a new leader fires before the journal has that a stream is a new one", "scheduler/open.go",
		"done = done && seen && above && said", "_ = said\n		done = done && seen && above", property},
	{"fired-early", "an entry is fired a moment before it is due", "scheduler/fire.go", "if key.At.After(now) {", "if key.At.After(now.Add(300 * time.Millisecond)) {", property},
	{"replace-ignored", "an entry that stands for an older one does not replace it", "tracker/fold_entry.go", "if ours && replaces {", "if false && replaces {", property},
	{"replaces-any-job", "an entry replaces whatever stands at the offset that it names", "tracker/fold_entry.go",
		"offset >= by.Offset || old != nil && old.JID != by.JID {", "offset >= by.Offset || old != nil && false {", another},
	{"lane-looks-ahead", "what a command did to an entry that was looked up before is not seen", "scheduler/fire.go",
		"if pending, err := entries.Pending(s); err != nil || !pending {", "if pending, err := entries.Pending(s); err != nil || false && !pending {", early},
	{"barriers-not-awaited", "a new leader fires before it has read to its own barriers", "scheduler/open.go",
		"done = done && seen && above && said", "done = done && above && said", property},
	{"refusal-forgotten", "a doubtful fire is taken for delivered although its queue may have refused it", "scheduler/settle.go",
		"!d.Returned && c.settling.intact && !c.setup.mayRefuse(queueOf(d))", "!d.Returned && c.settling.intact", property},
	{"held-for-an-hour", "a queue that refused a job waits for a clock that was set back", "scheduler/clock.go", "if back < setBack {", "if true {", setClock},
	{"strays-left-out", "what went astray is not entered again", "scheduler/astray.go",
		"c.settling.astray = append(c.settling.astray, s)", "_ = s", property},
	{"strays-not-awaited", "a new leader leads before what went astray is entered again", "scheduler/astray.go",
		"return len(c.settling.astray) == 0 && c.settling.entering == 0, nil", "return true, nil", property},
	{"mended-untold", "the way of fires is mended before the journal has it that it was broken", "scheduler/way.go",
		"return c.way.told && c.entries.State().AstrayAt > c.epoch", "return true", property},
	{"proven-too-early", "a probe that was sent is taken for one that arrived", "scheduler/way.go", "if !w.back || p.Number", "if p.Number", property},
	{"needs-too-high", "carrying over lets the journal forget what may have gone astray", "scheduler/carry.go",
		"min(c.carry.needs, state.RoutedTo+1)", "c.carry.needs", kept},
	{"burials-unseen", "a burial that never reached the dead jobs is taken for one that did", "scheduler/way.go",
		"|| len(w.burials) > 0 && w.burials[0] <= w.behind {", "{", buried},
	{"forgers-obeyed", "what any client writes into the journal is obeyed", "tracker/fold_journal.go", "if !t.Trusts(r) {", "if false && !t.Trusts(r) {", property},
	{"undone-twice", "an undo of an operation brings back what came back already, and has fired since", "scheduler/undoall.go",
		"case j.Type != wire.TypeChanged && u.survey.back.has(j.Offset):", "case false:", undone},
	{"kill-untold", "a burial that was asked for is told to be confirmed before the record that tells of it", "scheduler/core.go",
		"it.follow(func() { c.passed(it.seq) })", "it.follow(func() {})\n\t\tc.passed(it.seq)", undone},
	{"lone-burials-left-out", "a new leader does not look for burials that the journal lacks", "scheduler/settle.go",
		"if c.settling.lone, err = c.entries.Lone(); err != nil {", "if _, err = c.entries.Lone(); err != nil {", lone},
	{"lone-burials-told-by-halves", "a leader that tells of burials which the journal lacks has no successor that tells the others", "tracker/state.go",
		"s.Epoch, s.Identity, s.OpenedAt,", "s.ToldTo = wire.Through{Epoch: offset}\n\ts.Epoch, s.Identity, s.OpenedAt,", lone},
	{"lone-burials-taken-back", "a burial that the journal refused, and that was taken back, passes for one that it lacks", "tracker/lone.go",
		"s.ToldTo.Through = max(s.ToldTo.Through, seq)", "s.ToldTo.Through = max(s.ToldTo.Through, 1)", lone},
	{"undo-begins-anew", "a leader that goes on with an undo does not know what the one before it took back", "scheduler/undoall.go",
		"case u.survey.mine.has(d.at):", "case false:", undone},
}
