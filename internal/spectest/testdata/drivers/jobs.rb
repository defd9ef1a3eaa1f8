# The jobs of these tests, besides those of the specification.

# With this seed, the backoff of a first failure is the shortest possible one.
SEED = (0..).find { |seed| Random.new(seed).rand(30).zero? }

FAILED = {}

def register_jobs(worker)
  worker.register_job('FlakyJob') do |name|
    unless FAILED[name]
      FAILED[name] = true
      srand(SEED)
      raise 'not the first time'
    end
    puts "FlakyJob ran: #{name}"
  end

  worker.register_job('BrokenJob') do |name|
    puts "BrokenJob fails: #{name}"
    raise 'never works'
  end

  worker.register_job('CountedJob') do |number|
    puts format('begins %.6f %d', Time.now.to_f, number)
    sleep 0.3
    puts format('ends %.6f %d', Time.now.to_f, number)
  end
end
