// Package fieldmap turns the JSON objects of another job system into jobs, as a map file says.
//
// A map file is YAML. Its keys are fields of a job, and its values say where the field comes from:
//
//	jid: id                                     a path in the object
//	class: {from: [job_class, payload.class]}   the first that has a value
//	queue: {const: mails}
//	args: [user_id, {object: {text: body}}]     an array of values
//	at: {from: run_at, unit: ms}
//	priority: {from: prio, range: [0, 100]}
//
// # Promises
//
// Parse refuses a map with a field, an option or a unit that does not exist. Values that a map does
// not convert keep their bytes: a number keeps all its digits. The same object always becomes the
// same job.
//
// # When things fail
//
// Parse names the line of the map. Apply names the field, and the path in the object.
package fieldmap
