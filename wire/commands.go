package wire

import shared "github.com/millrace-jobs/millrace/clients/go/wire"

// Commands to the leader.
const (
	CommandTrigger = "trigger"
	CommandRetry   = "retry"
	CommandKill    = "kill"
	CommandDelete  = "delete"
	CommandRelease = "release" // release held entries
	CommandDiscard = "discard" // delete held entries that are due, and release the others
	CommandPing    = "ping"    // find out whether a sidecar leads
	CommandDismiss = "dismiss" // remove a rejected record from the list
	CommandChange  = "change"
	CommandUndo    = "undo"
	CommandEnqueue = "enqueue"
	CommandState   = shared.CommandState
	CommandOperate = "operate" // begin a bulk operation
	CommandCancel  = "cancel"  // stop a bulk operation where it is
	CommandPause   = "pause"   // stop workers from taking jobs of a queue
	CommandResume  = "resume"  // let workers take them again
	CommandNote    = "note"    // journal an act of a sidecar: see Noted

	CommandMoveType = "move-type" // turn a queue into a queue of another type

	CommandDefine = "define" // set what a source defines
	CommandForget = "forget" // remove a periodic job or a limit, or a layer of it
	CommandRun    = "run"    // enqueue the job of a periodic job now
	CommandSkip   = "skip"   // skip a coming tick

	CommandClaim = shared.CommandClaim
	CommandFree  = "free" // free a slot by hand

	CommandFreeKey = "free-key" // end that a key is taken for a time
)
