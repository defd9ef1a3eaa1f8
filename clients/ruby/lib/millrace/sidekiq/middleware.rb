# frozen_string_literal: true

module Sidekiq
  # Middleware of clients and workers, as in Sidekiq: classes with a method `call` that yields.
  module Middleware
    # The middleware of clients or of workers, in order.
    class Chain
      include Enumerable

      # A class of middleware, with the arguments for its `new`.
      Part = Struct.new(:klass, :args)
      private_constant :Part

      # @private
      def initialize
        @parts = []
      end

      # Adds middleware inside all others. A class that is there already moves.
      def add(klass, *args)
        remove(klass)
        @parts << Part.new(klass, args)
      end

      # Adds middleware around all others.
      def prepend(klass, *args)
        remove(klass)
        @parts.unshift(Part.new(klass, args))
      end

      # Adds middleware around another one, or around all if that is missing.
      def insert_before(other, klass, *args)
        remove(klass)
        @parts.insert(index(other) || 0, Part.new(klass, args))
      end

      # Adds middleware inside another one, or inside all if that is missing.
      def insert_after(other, klass, *args)
        remove(klass)
        at = index(other)
        @parts.insert(at ? at + 1 : -1, Part.new(klass, args))
      end

      # Removes middleware.
      def remove(klass)
        @parts.reject! { |part| part.klass == klass }
      end

      # @yieldparam part its class is `klass`
      def each(&block)
        @parts.each(&block)
      end

      # @return [Boolean] whether a class is there
      def exists?(klass)
        !index(klass).nil?
      end
      alias include? exists?

      # @return [Boolean]
      def empty?
        @parts.empty?
      end

      # Removes all.
      def clear
        @parts.clear
      end

      # Calls all middleware, and then the block. The result is that of the outermost.
      def invoke(*args, &last)
        @parts.map { |part| part.klass.new(*part.args) }.reverse.inject(last) do |inner, outer|
          -> { outer.call(*args, &inner) }
        end.call
      end

      private

      def index(klass)
        @parts.index { |part| part.klass == klass }
      end
    end
  end

  # Middleware of workers may include this module.
  module ServerMiddleware
    # @return [Config]
    def config
      Sidekiq.config
    end

    # @return [Logger]
    def logger
      Sidekiq.logger
    end

    # @raise [Unsupported] always
    def redis
      Sidekiq.redis
    end
  end

  # Middleware of clients may include this module.
  ClientMiddleware = ServerMiddleware
end
