"""How rules, permissions and revocations read in other languages than English, and the last two in English too.

All patterns are for sentences in small letters, quotes straight. As in English, a cue counts where it commands.
"""

from __future__ import annotations

from mcp_compact.messages.rule_search import any_of

_START = r"(?:^|(?<=[,;:(–—，。；：、！]) ?|(?<=- ))"

_GERMAN = (
    (r"\b(?:verwende|verwenden|fass|ändere|lösche|benutze?|nutze?|nimm|schreibe?|mache?|lasse?|halte|f[üu]hre|teste|committe|antworte|achte|nenne|"
    r"halt|bleibe?|frage?|sag|gib)\b.*\b(?:immer|niemals?|nie|nur|kein\w*|nicht|stets|statt|stattdessen|darauf|vorher|zuerst|an$|"
    r"auf (?:deutsch|englisch)|dich an)\b(?! mehr weiter)"),
    r"\b(?:du|sie|man|wir) (?:darfst|dürfen|darf|sollst|sollen|soll|sollte|sollten|musst|müssen|muss)\b",
    r"\b(?:dürfen|darf|sollen|soll|müssen|muss|sollten)\b.*\b(?:immer|nie|niemals|nicht|nur|stets|bleiben|sein|werden|haben)\b",
    (rf"{_START}(?:bitte )?(?:niemals?|nie|immer|stets|auf keinen fall|keinesfalls|keine?(?:n|r)?|nur|nicht) (?!ein problem|ahnung|"
    r"sicher|schlecht|wirklich|ganz|so\b|noch\b|wieder\b|mehr\b|wahr)\w+"),
    r"\b(?:ab jetzt|ab sofort|von nun an|künftig|in zukunft|ohne (?:rückfrage|zu fragen|meine))\b|\bbitte (?:nicht|keine?|nur|immer|nie)\b",
    r"\b(?:vermeide|bevorzuge|unterlasse|finger weg|ist (?:verboten|tabu|untersagt|nicht erlaubt|pflicht))\b|\bich (?:bevorzuge|möchte (?:nur|keine?|immer))\b",
    r"\bbitte .{2,60}\bniemals?\b|^(?!.*\b(?:ist|war|steht|sind)\b).*\bauf (?:deutsch|englisch)\b|\bjedes ?mal,? (?:wenn|bevor) du\b|\b(?:vor|nach) (?:jedem|jeder)\b",
)  # fmt: skip
_FRENCH = (
    r"^(?:et |mais )?(?:n['e] ?|ne )(?!est\b|a\b|sais|marche|fonctionne)\w+.*\b(?:pas|jamais|plus|que|aucun\w*|rien)\b",
    r"^(?:s'il (?:te|vous) pla[iî]t,? )?\w+(?:e|s|ez|is) (?:toujours|uniquement|seulement|plutôt)\b",
    r"\b(?:toujours|jamais) (?:utiliser|lancer|écrire|faire|exécuter|tester|modifier|toucher|demander|répondre|ajouter)\b",
    r"\b(?:tu|vous|on|il|ils|elles|les \w+|le \w+|la \w+) (?:dois|devez|doit|doivent|ne dois|ne doit|ne devez|ne doivent)\b(?! (?:être un bug|y avoir))",
    r"\bil (?:ne )?faut (?:toujours|jamais|pas|que|absolument|impérativement)\b|\bà partir de maintenant\b|\b(?:désormais|dorénavant)\b",
    (r"^(?:évite|évitez|préfère|préférez|respecte|respectez|garde|gardez|limite)\b|\bje préfère\b|\binterdit\w*\b|\bsans (?:me )?demander\b|"
    r"\bsans mon accord\b|^(?:réponds?|répondez|écris|écrivez|utilise|utilisez)\b.*\b(?:en |au lieu|pas\b|plutôt|uniquement)|\bau lieu d\w*\b|^(?!.*\b(?:est|sont|était)\b).*\ben (?:français|anglais)\b|"
    r"^pas (?:de|d')\s?\w+|\b(?:avant|après) chaque\b|\bà chaque fois que tu\b"),
)  # fmt: skip
_SPANISH = (
    r"^(?:por favor,? )?(?:siempre|nunca|jamás) (?!ha\b|he\b|funciona|falla|pasa|es\b|está|fue|había|devuelve|da\b|me\b|lo he)\w+",
    (r"^(?:por favor,? |y )?no (?!tienes|puedes|sabes|eres|estás|debes\b|es\b|crees|ves\b|haces|quieres|tenemos|sé\b)(?:\w{2,}es|\w{2,}as|use|toque|haga|"
    r"cambie|modifique|escriba|borre|añada|agregue|ejecute|suba)(?:l[oae]s?)?\b"),
    (r"^(?:usa|utiliza|escribe|responde|contesta|haz|ejecuta|pon|mantén|deja)\b.*\b(?:siempre|nunca|solo|sólo|en lugar|en vez|no\b|en español|en inglés|"
    r"antes|intacto)\b"),
    r"\b(?:debes?|deben|tienes que|tiene que|tienen que|hay que)\b (?!haber|ser un (?:error|bug)|estar mal)\w+|\ba partir de (?:ahora|hoy)\b|\bde ahora en adelante\b",
    (r"^(?:evita|evite|prefiere|solo|sólo|únicamente|nada de|respeta|asegúrate)\b|\bprefiero\b|\bprohibido\b|\bno se (?:puede|permite|debe|toca)n?\b|"
    r"\bsin (?:preguntar(?:me)?|mi permiso|consultar)\b|\b(?:antes|después) de cada\b|\bcada vez que (?:hagas|cambies|\w+es|\w+as)\b|\ben (?:lugar|vez) de\b|^(?!.*\b(?:es|está|son)\b).*\ben (?:español|inglés)\b"),
)  # fmt: skip
_PORTUGUESE = (
    r"^(?:por favor,? )?(?:sempre|nunca|jamais) (?!si |se |funcion|falh|foi|é\b|est|acontec|vi\b|deu|tive|há)\w+|\ba partir de agora\b|\bde agora em diante\b",
    r"^(?:por favor,? )?não (?:use|usem|faça|altere|mude|toque|modifique|escreva|apague|adicione|crie|mexa|rode|execute|commite|suba|envie|remova|coloque)\b",
    (r"\b(?:deve|devem|tem que|têm que|é preciso|é proibido|não pode|não podem|não deve)\b (?!haver|ter sido|ser um (?:erro|bug))\w+|"
    r"^(?:evite|prefira|apenas|somente|mantenha|responda|escreva|use)\b.*\b(?:sempre|só|apenas|em vez|não|em português|em inglês|todos?|cada)\b|"
    r"^evite\b|\bprefiro\b|\bsem (?:perguntar|minha permissão|me avisar)\b|\b(?:antes|depois) de cada\b|\bem vez de\b"),
)  # fmt: skip
_ITALIAN = (
    r"^non \w+(?:are|ere|ire|arlo|arla|erlo)\b|^(?:usa|scrivi|rispondi|fai|esegui|mantieni|lascia|chiedi)\b.*\b(?:sempre|mai|solo|invece|prima|in italiano|in inglese)\b",
    (r"\b(?:sempre|mai) (?:usare|scrivere|fare|modificare|toccare|eseguire)\b|\bd'ora in (?:poi|avanti)\b|^(?:evita|preferisci|niente)\b|\bpreferisco\b|"
    r"\b(?:devi|dovete|devono|deve|bisogna)\b (?!esserci|essere un (?:bug|errore))\w+|\bvietat\w\b|\bsenza (?:chiedere|il mio permesso)\b|\binvece d[i']"),
)  # fmt: skip
_RUSSIAN = (
    r"^(?:пожалуйста,? |и |но )?(?:всегда|никогда не|ни в коем случае) (?!был|падал|работал|видел|есть|падает|работает)\w+",
    r"^(?:пожалуйста,? |и |но |а )?не (?!знаю|работает|понимаю|могу|вижу|хочу знать|уверен)\w+(?:й|йте|и|ите|ь|ьте|ся|йся)\b",
    r"\b(?:нельзя|запрещено|обязательно|необходимо|отныне|впредь|с этого момента|с этого дня|предпочитаю)\b|\bдолж(?:ен|на|но|ны)\b(?! быть (?:баг|ошибк))",
    (r"^(?:пожалуйста,? )?(?:используй|используйте|пиши|пишите|отвечай|отвечайте|делай|избегай|избегайте|соблюдай|оставь)\b.*(?:только|всегда|вместо|не |на русском|"
    r"на английском|без|как есть)|^избегай(?:те)?\b|\bбез (?:моего|спроса|разрешения)\b|\b(?:перед|после) кажд\w+\b|\bтолько (?:после|с моего)\b|\bтеперь всегда\b|^(?:пиши|пишите|отвечай|отвечайте|комментарии|коммиты)\b.*\bна (?:русском|английском)\b"),
)  # fmt: skip
_MORE = (
    # Polish, Dutch, Turkish, Vietnamese, Indonesian, Ukrainian, Arabic, Hindi, Thai
    r"^(?:proszę,? )?(?:zawsze|nigdy nie|nie \w+(?:aj|uj|ij|yj|ań|rób|pisz)(?:cie)?)\b|\bod teraz\b|\bnie wolno\b|^unikaj\b",
    r"^(?:gebruik|schrijf|doe|houd|antwoord|raak)\b.*\b(?:altijd|nooit|geen|niet|alleen|in plaats van)\b|\bvanaf nu\b|^(?:altijd|nooit) \w+en\b",
    r"\b(?:bundan sonra|asla|her zaman|mutlaka|sakın)\b.*\w+(?:ma|me|mayın|meyin|malısın|melisin|n|t|l)\b|\w+(?:mayın|meyin)\b",
    r"\b(?:luôn(?: luôn)?|không bao giờ|đừng|không được|từ (?:giờ|nay)|bắt buộc|phải luôn)\b",
    r"^(?:tolong )?(?:selalu|jangan(?: pernah)?|dilarang|hindari)\b|\bmulai sekarang\b|\b(?:harus|wajib) (?:selalu|di\w+|meng\w+|pakai)\b",
    r"^(?:завжди|ніколи не|не \w+(?:й|йте|и|іть))\b|\bвідтепер\b|\bзаборонено\b",
    r"(?:من الآن فصاعدا|^دائما|^لا ت\w+|أبدا|يجب (?:أن|عليك)|ممنوع|تجنب)",
    r"(?:हमेशा|कभी (?:भी )?(?:न|मत|नहीं)|मत (?:करो|करना|करें|छू)|अब से|ज़रूरी है)",
    r"(?:ห้าม|ต้อง.*(?:เสมอ|ทุกครั้ง)|เสมอ|อย่า|ตั้งแต่นี้)",
)  # fmt: skip
_CHINESE = (
    r"必须|必須|务必|務必|一律|切勿|请勿|請勿|勿|严禁|嚴禁|禁止|不得(?!不)|不许|不許|不准|不允许|不允許",
    r"(?<!要)不要(?!紧|緊|脸|求|了|担心|急|怕|慌)|(?:^|[，,。；;：:！!、 ]|请|請|都|也|就|先|千万|千萬|永远|你|再|以后|最好|绝对)(?:别|別)(?!的|人|名|处|说是|扭|担心|急|怕|客气|慌|介意)",
    r"[别別](?:动|動|改|碰|删|刪|用|写|寫|加|提交|推|忘|乱|亂|直接|随便|擅自|把|换|拆|重构|跑|运行)|用(?:中文|英文|英语|日文|繁体|简体)[。!！]?$",
    r"不能(?:写死|硬编码|使用|包含|出现|修改|改|动|删|提交|直接|超过|依赖|引入|小于|大于|少于|多于|随便|跳过|省略|暴露|泄露|破坏|影响|低于)",
    r"始终|始終|永远(?:不|只|都|用)|永遠(?:不|只|都)|总是(?:用|使用|先|要|在|以)|從現在|从现在(?:起|开始)|从今(?:以后|往后)|今后|今後(?:都|不|請|一律)|往后",
    r"(?:^|[，,。；：])以[后後](?!的|再说|再看|再讲|再议)(?:都|请|請|不|别|一律|就|要|每|只|再|所有|提交|写|用|回)?",
    r"(?:^|[，,。；：、]|你|请|都|你们|代码|文件|测试|里|中)不(?:能|可以|可|应该|應該|应|该)(?!不|能|够|运行|启动|用了|正常|滚动|通过|加载|保存|连接|显示|打开|编译|工作|访问|登录)",
    r"(?:^|[，,。；：、]|请|都|你)只(?:能|用|使用|许|准|允许|需|改|在|看|修改|要(?!是))(?!是因为|好|有这样|看到|看见|这样|等|显示|靠)",
    r"统一(?:用|使用|采用|改|放|写|命名)|統一(?:用|使用)|默认(?:用|使用|都|采用)|优先(?:用|使用|考虑|选)|優先使用|尽量(?:不|用|少|避免|使用|保持|简)|盡量|避免|确保|確保",
    r"(?:每次|每个|每一次|所有|全部|任何|凡是|每當|每当|一切).{1,40}(?:都|必|要|须|須|应|不|先|得)|(?:都|全部)(?:要|得|必须|用|使用)(?!了)",
    r"记住|記住|牢记|谨记|注意[：:，,]?.{4,}|別忘了|别忘了|保持.{1,20}(?:不变|不變|简洁|一致|风格|格式|不动)|除非我|没有?我的?(?:同意|允许|许可|确认|批准)|未经我?",
    r"(?:而不是|不要用|而非|代替|替代|改用|别用|而不用)|用(?:中文|英文|英语|日文|繁体|简体|markdown)(?:回答|回复|写|书写|注释|输出|交流|说|沟通)|(?:先|首先).{1,20}(?:问我|确认|征求|询问)",
    r"[\u4e00-\u9fff]{2}(?:之|以)?前(?:必须|要|请|得|都|需要|务必)?先.|(?:提交|推送|修改|合并|发布|部署|删除|动手|开始)(?:之)?前.{0,8}(?:必|要|需|请|都)|我(?:更)?(?:喜欢|偏好|习惯|倾向|希望(?:你|所有|每))|我只(?:想|要|需要)",
    r"不(?:需要|用|必)(?:写|加|添加|再写|解释|总结|生成|创建|考虑|管|改|动)|无需|不(?:应该|應該)|应该?(?:始终|都|用|使用|先|只|放|写)|應(?:該)?(?:使用|用|先)",
)  # fmt: skip
_JAPANESE = (
    (r"必ず|常に.*(?:こと|して|する|ください|せよ)|いつも.*(?:して|してください|使って)|絶対に?.*(?:ない|な[。!！]?$|するな|ください|こと|禁止)|てはいけ|てはなら|では?いけ|"
    r"ないでくださ|しないで|(?:さ|ら|わ|か|ま|ば|た|な)ないで(?:ください|ね|[。!！]?$)|禁止|(?:する|ない|の|使う|書く|行う)こと[。!！]?$|(?:使う|する|触る|変える|消す|書く)な(?:よ)?[。!！]?$|"
    r"今後(?:は|も)|これから(?:は|も)|以後|毎回|(?:する|行う|書く)(?:たび|度)に|ではなく.*(?:して|使って|使用|ください|書いて)|べき(?:では|だ|です|で)|のみ(?:を)?(?:使用|変更|使って|許可)|"
    r"(?:コミット|変更|プッシュ|実装|削除)(?:する|の)?前に.*(?:て|ください|こと)|以外は?.*(?:触らない|変更しない|使わない)|避けて|(?:英語|日本語|中国語)で(?:答え|書|回答|返|説明)|許可なく|勝手に.*(?:ない|な)"),
)  # fmt: skip
_KOREAN = (
    (r"반드시|항상.*(?:해|하세요|하십시오|사용|써|할 것|작성|것)|절대.*(?:마|말|금지|안 ?돼|안 ?된)|하지 ?마(?:세요|십시오|라)?|지 ?마(?:세요|십시오|라|요)?[.!]?|지 ?말(?:고|아|것|자)|금지|"
    r"앞으로(?:는|도)?|이제부터|매번|(?:만|으로만|에서만) (?:사용|작성|수정|써)|대신.*(?:사용|써|쓰)|말고.*(?:사용|써|쓰|해)|(?:해야|여야|어야) (?:한다|합니다|해요|돼|됩니다|해)|(?:하|커밋|푸시)기 전에.*(?:해|하세요|주세요)|"
    r"허락 없이|선호|(?:한국어|영어|일본어|중국어)로 |(?:제가|내가) ?(?:직접 )?(?:할게|하겠)"),
)  # fmt: skip

OTHER_RULES = any_of(
    [own for language in (_GERMAN, _FRENCH, _SPANISH, _PORTUGUESE, _ITALIAN, _MORE) for own in language],
    beyond_ascii=[own for language in (_RUSSIAN, _CHINESE, _JAPANESE, _KOREAN) for own in language],
)

_REVOKED = (
    (r"\b(?:forget|ignore|disregard|drop|scrap|cancel|lift|remove|delete|revoke|undo|discard)\b.{0,60}\b(?:rules?|instructions?|constraints?|"
    r"restrictions?|requirements?|ban|convention|what i said|everything i said|my earlier|guidelines?|polic(?:y|ies))\b(?!\.md| files?| engine| tests?)"),
    (r"\b(?:rules?|instructions?|constraints?|restrictions?|ban|requirement)\b.{0,60}\b(?:no longer (?:applies|apply|holds?|counts?|matters?|needed)|is (?:off|gone|lifted|"
    r"void|obsolete|cancell?ed)|are (?:off|gone|lifted|void)|(?:doesn't|does not|don't) (?:apply|hold|count) any ?more)\b|^never ?mind (?:the|about|what)\b"),
    r"\bvergiss (?:die|das|den|meine|was)\b.*|\b(?:regel|vorgabe|verbot)\b.*\b(?:gilt nicht mehr|aufgehoben|hinfällig)\b|\bignoriere (?:die|meine) .*(?:regel|vorgabe|anweisung)",
    (r"\boublie[zr]? (?:la|les|ma|cette|ce que)\b.*|\brègle\b.*\bne s'applique plus\b|\bolvida (?:la|las|lo|mi)\b.*|\bregla\b.*\bya no (?:aplica|vale)\b|\besque(?:ça|ce) (?:a|as|o|da)\b.*|"
    r"\bdimentica (?:la|le|quello|il)\b.*|\bзабудь(?:те)? (?:про |о |об |правило|то).*|\bправило\b.*\bбольше не (?:действует|нужно)\b"),
)  # fmt: skip
_REVOKED_IN_CHARACTERS = (
    r"(?:忘(?:记|掉|了)|忽略|取消|撤销|撤回|作废|废除|解除|去掉|删掉|忘記|撤銷).{0,24}(?:规则|要求|限制|约束|规定|说的|指示|規則|禁令|约定)|(?:规则|要求|限制|约束|规定|規則|说的).{0,16}(?:作废|取消|不算|失效|不再(?:适用|有效)|废除|算了|解除)",
    r"(?:ルール|指示|制約|制限|規則|と言った|件).{0,16}(?:忘れて|無視して|取り消|撤回|なしで|不要|もう.*ない)|(?:忘れて|無視して|取り消して).{0,10}(?:ください|いい)|(?:규칙|지시|제한|말).{0,16}(?:잊어|무시|취소|필요 없)",
)  # fmt: skip
_PERMITTED = (
    (r"\b(?:you (?:may|can|are allowed to|are free to|could)|we may) (?:now|again)\b(?! (?:see|find|log in))|\byou (?:may|can|are allowed to)\b(?! (?:not|see|find|read|check|tell)\b).{2,80}\b(?:now|again|from now on|after all|any ?time)[.!]?$|"
    r"^now you (?:may|can)\b|\bfeel free to\b.{2,80}\b(?:now|again|from now on)\b|^from now on,? you (?:may|can)\b"),
    r"\b(?:no longer|don't|do not|needn't|doesn't) (?:need|have) to\b.{2,80}(?:\bany ?more|\banylonger)|\b(?:you|we|it|there) no longer (?:need|has|have)s? to\b|\bno need to\b.{2,60}\bany ?more\b|\bno longer (?:necessary|required|needed) to\b",
    r"\b(?:is|are) (?:now |again )?(?:allowed|permitted)(?: to \w+)? (?:again|now|from now on|after all)\b|\b(?:is|are) (?:now|again) (?:allowed|permitted)\b|^[a-z]+ing\b.{0,40}\bis (?:now |again )?(?:fine|ok|okay)(?: now| again)?\b|\bit(?:'s| is) (?:ok|okay|fine|allowed) to\b.{2,60}\b(?:now|again)\b",
    r"\b(?:du|ihr|sie) (?:darfst|dürft|dürfen|kannst|könnt|können) (?:jetzt|wieder|nun|ab jetzt|ab sofort)\b|\b(?:darfst|darf|dürfen|kannst)\b.{2,60}\bwieder\b|\b(?:ist|sind) (?:jetzt|wieder|nun) (?:erlaubt|in ordnung|ok)\b|\b(?:musst|müssen|brauchst)\b.{0,60}\bnicht mehr\b",
    (r"\b(?:tu|vous) (?:peux|pouvez) (?:maintenant|désormais|à nouveau|de nouveau)\b|\bplus besoin d\w*\b|\b(?:ya|ahora) (?:sí )?puedes\b|\bya no (?:hace falta|tienes que|es necesario|hay que)\b|\b(?:agora|já) (?:você )?(?:pode|podes)\b|\bnão (?:é|precisa|precisas) mais\b|\bora puoi\b|\bnon (?:serve|devi|è) più\b|"
    r"\b(?:теперь|уже) можно\b|\bбольше не (?:нужно|надо|обязательно|требуется)\b"),
)  # fmt: skip
_PERMITTED_IN_CHARACTERS = (
    r"(?:不用|不必|不需要|无需|無需|没必要|不須)再|(?:现在|现|已经|以后|從現在起|从现在起|现在起)?(?:可以|允许|能)(?!不).{1,30}了[。!！.]?$|现在(?:可以|允许)|解禁|不再(?:需要|要求|禁止|限制)|再也不用",
    r"もう.{0,30}(?:なくて(?:も)?(?:いい|よい|構わない|結構)|必要(?:は)?(?:ない|ありません))|(?:今後は|これからは|もう|今は)?.{1,30}(?:ても|でも)(?:いい|よい|構いません|大丈夫)(?:です|よ|ですよ|になりました)?[。!！]?$|이제.{0,30}(?:해도|아도|어도) (?:돼|됩니다|괜찮)|더 ?이상.{0,30}(?:않아도|필요)|안 해도 (?:돼|됩니다)",
)  # fmt: skip
REVOCATIONS = any_of(_REVOKED, beyond_ascii=_REVOKED_IN_CHARACTERS)
PERMISSIONS = any_of(_PERMITTED, beyond_ascii=_PERMITTED_IN_CHARACTERS)
