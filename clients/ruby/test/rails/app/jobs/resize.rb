# frozen_string_literal: true

# The name of its jobs is not the name of the class, so the name loads nothing.
class Resize
  include Millrace::Handler
  millrace_class 'resize-image'

  def perform(what)
    puts "old #{what} in an executor: #{Rails.application.executor.active?}"
    raise Millrace::Discard, 'it is gone' if what == 'gone'
    raise KeyError, 'no such image' if what == 'missing'
  end
end
