% Loads the modules of RabbitMQ's applications in one step. RabbitMQ needs all of them, and would
% search fifty directories for each. If this fails, RabbitMQ loads them as it always does.
catch begin
	{ok, [Plugins]} = file:consult("enabled_plugins"),
	Add = fun Add(App, Apps) ->
		File = code:where_is_file(atom_to_list(App) ++ ".app"),
		case is_map_key(App, Apps) orelse File =:= non_existing of
			true -> Apps;
			false ->
				{ok, [{application, App, About}]} = file:consult(File),
				Modules = [{M, filename:join(filename:dirname(File), atom_to_list(M) ++ ".beam")} || M <- proplists:get_value(modules, About, [])],
				lists:foldl(Add, Apps#{App => Modules}, proplists:get_value(applications, About, []))
		end
	end,
	Apps = lists:foldl(Add, #{}, [rabbit, rabbitmq_prelaunch, compiler | Plugins]),
	Files = [{M, F, Code} || {M, F} <- lists:append(maps:values(Apps)), code:is_loaded(M) =:= false, {ok, Code} <- [file:read_file(F)]],
	Load = fun Load(Some) ->
		Step = case code:prepare_loading(Some) of
			{ok, Prepared} -> code:finish_loading(Prepared);
			Failed -> Failed
		end,
		case Step of
			{error, Refused} -> Load([One || {M, _, _} = One <- Some, not lists:keymember(M, 1, Refused)]); % those that run code when they are loaded
			ok -> ok
		end
	end,
	Sticky = [code:lib_dir(App, ebin) || App <- [kernel, stdlib]],
	[code:unstick_dir(Dir) || Dir <- Sticky],
	Load(Files),
	[code:stick_dir(Dir) || Dir <- Sticky],
	persistent_term:put(localbroker_preloaded, length(Files))
end.
