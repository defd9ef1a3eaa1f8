# Ruby example
Thread.new do
  loop do
    sleep 10

    heartbeat = {
      type: "heartbeat",
      identity: "#{hostname}:#{Process.pid}:#{tag}",
      hostname: Socket.gethostname,
      pid: Process.pid,
      tag: "production",
      concurrency: worker_count,
      busy: busy_worker_count,
      beat: Time.now.to_f,
      rss_kb: `ps -o rss= -p #{Process.pid}`.to_i,
      queues: ["critical", "default"],
      version: "1.0.0"
    }

    channel.basic_publish('', 'heartbeats', heartbeat.to_json)
  end
end
