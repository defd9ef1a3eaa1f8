// The tab Jobs of RabbitMQ's management UI.
//
// Since RabbitMQ 4.3.4, templates are compiled when RabbitMQ is built, and the page's policy allows
// neither eval nor scripts in the page. Older versions load templates from .ejs files. So this file
// makes all markup itself, and both kinds of template only call millrace_page. Every value goes
// through millrace_text.

function millrace_text(value) {
    return String(value === undefined || value === null ? '' : value).replace(/[&<>"']/g, function(c) {
        return '&#' + c.charCodeAt(0) + ';';
    });
}

function millrace_facts(rows) {
    return '<table class="facts">' + rows.map(function(row) {
        return '<tr><th>' + millrace_text(row[0]) + '</th><td>' + row[1] + '</td></tr>';
    }).join('') + '</table>';
}

function millrace_count(value) {
    return millrace_text(String(value).replace(/\B(?=(\d{3})+$)/g, ','));
}

function millrace_time(ms) {
    return ms ? millrace_text(new Date(ms).toLocaleString()) : '';
}

function millrace_error(text) {
    return '<p class="status-error millrace-error">' + millrace_text(text) + '</p>';
}

// A link into Millrace's UI. It signs the user in first.
function millrace_link(vhost, page, label, button) {
    var href = 'api/millrace/' + encodeURIComponent(vhost.path) + '/' + page;
    return '<a class="millrace-open' + (button ? ' millrace-main' : '') + '" href="' + millrace_text(href) + '">' +
        (button ? '<button type="button">' + millrace_text(label) + '</button>' : millrace_text(label)) + '</a>';
}

// The page of Millrace's UI that shows a problem, as its dashboard links it.
function millrace_place(problem) {
    var part = encodeURIComponent(problem.subject || '');
    var queue = 'job-queues/' + part;
    return {
        queue_down: queue, no_consumer: queue, saturated: queue, oldest_too_old: queue, queue_growing: queue, queue_paused: queue,
        process_lost: 'worker-processes/' + part, job_stuck: 'jobs/' + part, retry_storm: 'retries?view=storm',
        dead_growth: 'dead-jobs?view=storm', schedule_overdue: 'scheduled-jobs', no_workers: 'worker-processes',
        version_skew: 'worker-processes'
    }[problem.kind] || 'health';
}

function millrace_problems(vhost) {
    var items = (vhost.attention && vhost.attention.items) || [];
    if (items.length === 0) return '<p>Nothing needs attention.</p>';
    return '<ul class="millrace-problems">' + items.map(function(item) {
        var subject = item.subject ? item.subject + ': ' : '';
        return '<li>' + millrace_text(item.severity === 'critical' ? 'Critical: ' : 'Warning: ') +
            millrace_link(vhost, millrace_place(item), subject + item.text) + '</li>';
    }).join('') + '</ul>';
}

function millrace_figures(vhost) {
    var o = vhost.overview;
    if (vhost.status === 0) return '<p>The sidecar does not answer yet.</p>';
    if (vhost.status !== 200 || !o) {
        return millrace_error('The sidecar answers ' + vhost.status + ': ' + ((o && o.reason) || 'no reason was given') + '.');
    }
    var leader = o.leader && o.leader.epoch >= 0 ? o.leader.identity : 'none';
    return millrace_facts([
        ['Scheduled', millrace_count(o.sets['scheduled-jobs'].total)],
        ['Retries', millrace_count(o.sets['retries'].total)],
        ['Dead', millrace_count(o.sets['dead-jobs'].total)],
        ['Overdue', millrace_count(Math.round(o.scheduled_overdue_seconds)) + ' s'],
        ['Worker processes', millrace_count(o.processes.running)],
        ['Leader', millrace_text(leader)]
    ]) + '<h3>Needs attention</h3>' + millrace_problems(vhost);
}

var millrace_states = {
    starting: 'is starting', running: 'runs', waiting: 'does not run, and starts again', stopping: 'is stopping', unknown: 'does not answer'
};

function millrace_sidecar(vhost, node) {
    var rows = [['Node', millrace_text(node)], ['Sidecar', millrace_text(millrace_states[vhost.state] || vhost.state)]];
    if (vhost.pid) rows.push(['Process', millrace_text(vhost.pid)]);
    if (vhost.since) rows.push(['Since', millrace_time(vhost.since)]);
    if (vhost.restarts) rows.push(['Restarts', millrace_count(vhost.restarts)]);
    if (vhost.state === 'waiting') rows.push(['Starts again', millrace_time(vhost.starts_at)]);
    if (vhost.last_exit) {
        rows.push(['Last exit', millrace_time(vhost.last_exit.at)]);
        rows.push(['Reason', '<span class="millrace-reason">' + millrace_text(vhost.last_exit.reason) + '</span>']);
    }
    var log = vhost.tail && vhost.tail.length
        ? '<h3>Log of the sidecar</h3><pre class="millrace-log">' + millrace_text(vhost.tail.join('\n')) + '</pre>' : '';
    return '<h3>Sidecar on this node</h3>' + millrace_facts(rows) + log;
}

// RabbitMQ's UI replaces what is in elements of the class updatable every few seconds.
function millrace_vhost(vhost, node) {
    var open = vhost.state === 'running' ? '<p>' + millrace_link(vhost, '', 'Open Millrace', true) + '</p>' : '';
    var figures = vhost.state === 'running' ? millrace_figures(vhost)
        : millrace_error('The sidecar of this node ' + (millrace_states[vhost.state] || vhost.state) + '.');
    return '<div class="section millrace-vhost"><h2>Virtual host ' + millrace_text(vhost.vhost) + '</h2><div class="hider updatable">' +
        open + figures + millrace_sidecar(vhost, node) + '</div></div>';
}

function millrace_linked(m) {
    if (!/^https?:\/\//.test(m.url || '')) {
        return millrace_error('Set millrace.url in rabbitmq.conf to the address of Millrace, such as https://jobs.example.');
    }
    return '<p><a class="millrace-main" href="' + millrace_text(m.url) + '">Open Millrace</a></p>';
}

function millrace_unserved(m) {
    return (m.unserved || []).map(function(name) {
        return millrace_error('Virtual host ' + name + ' has exchanges of the type x-delayed-message, but no sidecar serves it, ' +
            'so delayed messages are refused. ' +
            (m.mode === 'link' ? 'Run a sidecar for it.' : 'Its sidecar starts when all nodes of the cluster run.'));
    }).join('');
}

function millrace_page(m) {
    var html = '<h1>Jobs</h1>';
    if (m.mode === 'link') return html + millrace_linked(m) + millrace_unserved(m);
    html += '<p id="millrace-said" role="status"></p><div class="updatable">';
    m.missing.forEach(function(name) {
        html += millrace_error('millrace.vhosts names the virtual host ' + name + ', which does not exist.');
    });
    html += millrace_unserved(m);
    if (m.vhosts.length === 0) {
        html += '<p>No virtual host that you may use has jobs. Name one in rabbitmq.conf: <code>millrace.vhosts.1 = jobs</code>. ' +
            'Virtual hosts that Millrace has used before appear here without that.</p>';
    }
    return html + '</div>' + m.vhosts.map(function(vhost) { return millrace_vhost(vhost, m.node); }).join('');
}

// Begins a session with the credentials of this UI, and opens a page of Millrace's.
function millrace_open(href) {
    var header = (typeof authorization_header === 'function' ? authorization_header : auth_header)();
    var said = function(text) { $('#millrace-said').text(text); };
    fetch('api/millrace-session', { method: 'POST', credentials: 'same-origin', headers: { Authorization: header } }).then(function(r) {
        if (r.ok) window.location.assign(href);
        else said('Millrace cannot be opened: RabbitMQ answers ' + r.status + '.');
    }, function() { said('Millrace cannot be opened: RabbitMQ does not answer.'); });
}

(function() {
    var link = document.createElement('link');
    link.rel = 'stylesheet';
    link.href = 'css/millrace.css';
    document.head.appendChild(link);
})();

if (typeof COMPILED_TEMPLATES !== 'undefined') {
    COMPILED_TEMPLATES['millrace'] = function(json) { return millrace_page(json.millrace); };
}

NAVIGATION['Jobs'] = ['#/jobs', 'management'];

dispatcher_add(function(sammy) {
    sammy.get('#/jobs', function() { render({ 'millrace': '/millrace-status' }, 'millrace', '#/jobs'); });
});

$(document).on('click', '.millrace-open', function(event) {
    event.preventDefault();
    millrace_open($(this).attr('href'));
});
