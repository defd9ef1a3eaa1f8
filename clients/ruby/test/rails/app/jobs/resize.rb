# frozen_string_literal: true

# Is not called like its jobs, so that its name loads nothing.
class Resize
  include Millrace::Handler
  millrace_class 'resize-image'

  def perform(what)
    puts "old #{what} in an executor: #{Rails.application.executor.active?}"
    raise Millrace::Discard, 'it is gone' if what == 'gone'
    raise KeyError, 'no such image' if what == 'missing'
  end
end
